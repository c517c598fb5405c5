"""Local workers: processes of this machine, which nobody but this one may speak to."""

import logging
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker

import dask
from distributed import LocalCluster
from distributed.security import Security

from sweep.errors import RunError

# Dask's web pages of a cluster, which ask for no certificate: none.
NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


@contextmanager
def local_cluster(workers: int, environment: Mapping[str, str]) -> Iterator[LocalCluster]:
    """A cluster of this process' own: whoever has not its certificate is turned away.

    Its ports are open to all users of this machine, and who may speak to Dask may run code in it.
    """
    start_tracker()
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(NO_PAGES))
        with _keep_interrupts():
            cluster = stack.enter_context(_start_cluster(workers, environment))
        yield cluster


def _start_cluster(workers: int, environment: Mapping[str, str]) -> LocalCluster:
    try:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            # Processes of one thread: Python's part of a block is one thread's work at a time.
            processes=True,
            # No address that another machine can reach; its other users are kept out by the
            # certificate.
            host="127.0.0.1",
            security=Security.temporary(),
            dashboard_address="127.0.0.1:0",  # any port: other sweeps may run on this machine
            scheduler_kwargs={"dashboard": False},
            env=dict(environment),
            silence_logs=logging.CRITICAL,  # what fails is said once, by this process
        )
    except (RuntimeError, OSError) as error:
        raise RunError(
            f"local workers did not start ({error}), most often for lack of memory: "
            "use fewer workers"
        ) from error


def start_tracker() -> None:
    """Start Python's tracker of semaphores, silent.

    It removes what a worker that was killed has left, and would warn of it: of no use to anyone.
    """
    usual = os.environ.get("PYTHONWARNINGS")
    # By the environment, as the tracker is a process of its own: filters of this one do not reach
    # it.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (usual, "ignore:resource_tracker")))
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if usual is not None:
            os.environ["PYTHONWARNINGS"] = usual


@contextmanager
def _keep_interrupts() -> Iterator[None]:
    """Ctrl-C is heard when this ends; processes that are started meanwhile never hear it.

    A terminal sends it to them, too. They end with this process, which has something to say.
    """
    if os.name != "posix":
        yield
        return
    # Masked: children inherit a mask, and Python's handlers they do not.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
