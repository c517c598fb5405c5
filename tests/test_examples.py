"""The example scripts, as far as they run without SLURM."""

import gc
import os
import runpy
import sys
import warnings
from pathlib import Path

import pytest
import yaml
from cubes import DATA, arrays

import paradl

pytest.importorskip("dask_jobqueue", reason="the example needs dask-jobqueue")

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "slurm.py"

# In place of SLURM: a job is a process group of this machine, started at once.
COMMANDS = {
    # The script is gone when sbatch returns.
    "sbatch": 'cp "$1" "$0.job"; setsid bash "$0.job" > "$0.log" 2>&1 & echo "batch job $!"',
    "scancel": 'kill -- "-$1"',
}


@pytest.fixture
def run_example(monkeypatch):
    """Runs the example in this process."""

    def run(*options: object) -> None:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *map(str, options)])
        with warnings.catch_warnings():
            # dask-jobqueue forgets the files of its certificates without closing them.
            warnings.simplefilter("ignore", ResourceWarning)
            runpy.run_path(str(EXAMPLE), run_name="__main__")
            gc.collect()

    return run


def test_a_job_is_a_node_with_a_process_a_core(run_example, capsys):
    options = ["--cores", "40", "--memory", "180GB", "--walltime", "02:00:00", "--queue", "long"]
    run_example("spec.yaml", "cube.zarr", *options, "--script")
    script = capsys.readouterr().out.splitlines()
    assert [line for line in script if line.startswith(("#SBATCH", "export"))] == [
        "#SBATCH -J paradl",
        "#SBATCH -p long",
        "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=40",
        "#SBATCH --mem=168G",
        "#SBATCH -t 02:00:00",
        "export XLA_FLAGS=--xla_cpu_multi_thread_eigen=false",
        "export OMP_NUM_THREADS=1",
        "export NPROC=1",
        "export JAX_PLATFORMS=cpu",
        "export ZARR_THREADING__MAX_WORKERS=1",
    ]
    (worker,) = [line for line in script if "dask_worker" in line]
    assert "--nthreads 1" in worker
    assert "--nworkers 40" in worker
    assert "--memory-limit 4.19GiB" in worker
    assert " tls://" in worker
    assert all(f" --tls-{value} " in worker for value in ("ca-file", "cert", "key"))


def test_jobs_make_the_same_cube(run_example, tmp_path, monkeypatch):
    for name, script in COMMANDS.items():
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text(f"#!/bin/bash\n{script}\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    spec, made, expected = (tmp_path / name for name in ("spec.yaml", "jobs.zarr", "here.zarr"))
    spec.write_text(yaml.safe_dump(DATA))
    run_example(spec, made, "--cores", 1, "--memory", "2GB")
    paradl.run(DATA, expected)
    assert arrays(made) == arrays(expected)
