"""A sweep on SLURM: this process drives it from a login node, workers are jobs of dask-jobqueue.

    pip install dask-jobqueue
    python examples/slurm.py examples/paper.yaml /shared/paper.zarr --jobs 16 --cores 40 \
        --memory 180GB --walltime 02:00:00

SPEC is read here; STORE must be a folder that all nodes share, or an object-store URL. Blocks are
computed as soon as the first job has started. To stop, press Ctrl-C: the jobs are cancelled, and
the same command goes on from there.

Who may speak to Dask may run code as you, and its ports are open to all users of these machines.
So jobs and this process know each other by a certificate, which jobs read in the folder --shared
that you alone may read, as long as this process runs.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter

import dask
from dask_jobqueue.slurm import SLURMCluster
from distributed.security import Security

import paradl
from paradl.sweep.engine.dask_executor import WORKER_ENVIRONMENT
from paradl.sweep.engine.progress import Progress, bar


def main() -> None:
    """Sweep, or print the job's script."""
    options = parser().parse_args()
    node = options.cores, options.memory, options.walltime
    with slurm(*node, options.shared, options.queue) as cluster:
        if options.script:
            print(cluster.job_script())
        else:
            sweep_on(cluster, options.jobs, options.spec, options.store, bar)


def slurm(
    cores: int, memory: str, walltime: str, shared: str, queue: str | None = None
) -> SLURMCluster:
    """Jobs of a node each: a process of one thread on every core, which is how blocks run best."""
    return SLURMCluster(
        cores=cores,
        processes=cores,
        memory=memory,
        walltime=walltime,
        queue=queue,
        job_name="paradl",
        security=Security.temporary(),
        shared_temp_directory=shared,
        scheduler_options={"dashboard_address": "127.0.0.1:0"},
        job_script_prologue=[
            f"export {name}={value}" for name, value in WORKER_ENVIRONMENT.items()
        ],
    )


def sweep_on(cluster: SLURMCluster, jobs: int, spec: str, store: str, progress: Progress) -> None:
    """Sweep with so many jobs; those that end before it, at their wall time, are submitted anew."""
    cluster.adapt(minimum_jobs=jobs, maximum_jobs=jobs)
    with dask.config.set(certificate(cluster.security)):
        paradl.run(spec, store, scheduler=cluster.scheduler_address, progress=progress)


def certificate(security: Security) -> dict[str, str]:
    """What Dask's clients are set up with, so that this scheduler knows them."""
    known = security.get_tls_config_for_role("client")
    return {
        "distributed.comm.tls.ca-file": known["ca_file"],
        "distributed.comm.tls.client.cert": known["cert"],
        "distributed.comm.tls.client.key": known["key"],
    }


def parser() -> ArgumentParser:
    """What the site decides."""
    found = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    found.add_argument("spec")
    found.add_argument("store")
    found.add_argument("--jobs", type=int, default=1, help="how many nodes")
    found.add_argument("--cores", type=int, required=True, help="of a node")
    found.add_argument("--memory", required=True, help="of a node, such as 180GB")
    found.add_argument("--walltime", default="01:00:00", help="of a job")
    found.add_argument("--queue", help="SLURM's partition")
    found.add_argument("--shared", default="~", help="a folder of yours that all nodes see")
    found.add_argument("--script", action="store_true", help="print a job's script and stop")
    return found


if __name__ == "__main__":
    main()
