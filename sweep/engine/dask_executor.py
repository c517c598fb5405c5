"""Blocks on Dask: a cluster of local processes, or the workers of a running scheduler.

Only so many blocks are submitted as keep the workers busy, so that a cube of any number of blocks
neither stalls the scheduler nor fills its memory. Workers open the store by themselves: a task is
three short values.
"""

import logging
import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker
from queue import Empty, SimpleQueue
from typing import TypeAlias

import dask
from distributed import Client, Future, KilledWorker, LocalCluster
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend
from distributed.security import Security
from distributed.utils import silence_logging_cmgr

from paradl.grids.reading.errors import InputError, format_count
from paradl.sweep.cube.store import Cube
from paradl.sweep.engine.block import Execute, run_block
from paradl.sweep.errors import RunError

Task: TypeAlias = Callable[[int], object]
Block: TypeAlias = "Future[object]"

# Blocks in flight for each worker thread: one at work, one waiting.
AHEAD = 2
# Until a scheduler must answer: Dask's 30 s are long to wait for a wrong address.
CONNECT_SECONDS = 5
# A worker that died takes 1 to 3 s to start again; one that has no memory for it never does.
RESTART_SECONDS = 10
# How often we look for workers that joined: soon beside the minutes that it takes to get a node.
CHECK_SECONDS = 0.5

# Dask's web pages of a cluster, which ask for no certificate: none.
NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}

AWAY = "the Dask scheduler went away; finished blocks are kept: rerun the same command"

# One thread a worker: without this, XLA's own threads multiply with Dask's and all of them wait.
WORKER_ENVIRONMENT = {
    # Threads inside of one operation, which Eigen would start.
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    # XLA sizes the thread pool of its CPU client by it (DefaultThreadPoolSize, xla/pjrt/utils.cc).
    "NPROC": "1",
    # On a machine with a GPU the first worker's JAX would take most of its memory.
    "JAX_PLATFORMS": "cpu",
    "ZARR_THREADING__MAX_WORKERS": "1",
}


def make_local_environment() -> dict[str, str]:
    """WORKER_ENVIRONMENT for workers on this machine, which keep the user's own XLA_FLAGS."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    more = [flag for flag in WORKER_ENVIRONMENT["XLA_FLAGS"].split() if flag not in flags]
    return WORKER_ENVIRONMENT | {"XLA_FLAGS": " ".join([*flags, *more])}


@contextmanager
def connect_cluster(workers: int, scheduler: str | None) -> Iterator[Execute]:
    """A connected cluster, as a function that runs blocks and yields each when it is done."""
    with open_client(workers, scheduler) as client:

        def execute(cube: Cube, blocks: Iterable[int]) -> Iterator[int]:
            return run_tasks(client, partial(run_block, cube.location, cube.identity), blocks)

        yield execute


def run_tasks(client: Client, task: Task, blocks: Iterable[int]) -> Iterator[int]:
    """Each of `blocks` when its `task` has ended; workers may come and go meanwhile."""
    waiting = iter(blocks)
    running: dict[Block, int] = {}
    ended: SimpleQueue[Block] = SimpleQueue()
    threads, answered = 0, -math.inf
    while True:
        if time.monotonic() >= answered + CHECK_SECONDS:
            threads = _count_threads(client)
            # After the answer: a slow scheduler is not asked the more often.
            answered = time.monotonic()
        for block in islice(waiting, max(0, AHEAD * threads - len(running))):
            # pure=False: Dask takes tasks of equal arguments for one, and might hand out an earlier
            # result for a block that has lost its mark since.
            future = client.submit(task, block, pure=False)
            running[future] = block
            future.add_done_callback(ended.put)
        if not running:
            return
        with suppress(Empty):  # then there may be new workers with nothing to do
            future = ended.get(timeout=CHECK_SECONDS)
            _check(future)
            yield running.pop(future)


def _count_threads(client: Client) -> int:
    """Count the workers' threads; 1 if there are none, so that an adaptive cluster sees work."""
    try:
        return max(1, int(sum(client.nthreads().values())))
    except OSError as error:
        raise RunError(AWAY) from error


def _check(future: Block) -> None:
    """Say what kept the workers from doing a block."""
    if future.status == "finished":  # what the task returned may be lost with its worker by now
        return
    try:
        future.result()
    except KilledWorker as error:
        raise RunError(
            # Four by default (distributed.scheduler.allowed-failures: 3, and the first).
            f"{format_count(error.allowed_failures + 1, 'worker')} died at the same block; "
            "finished blocks are kept: give workers more memory, and rerun the same command"
        ) from error
    except CancelledError as error:
        raise RunError(AWAY) from error
    except RunError:  # of the block itself
        raise
    except (ImportError, RuntimeError) as error:
        raise RunError(
            f"a worker failed ({error}); install this paradl and its packages on all workers"
        ) from error


@contextmanager
def open_client(workers: int, scheduler: str | None) -> Iterator[Client]:
    """A client of a running scheduler, or of a cluster of local workers that ends with it."""
    if scheduler is not None:
        # What fails is said once, by this process: Dask would log it with a traceback.
        with silence_logging_cmgr(logging.CRITICAL), _connect(scheduler) as client:
            yield client
        return
    with (
        local_cluster(workers) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        try:
            yield client
        finally:
            # Dask (distributed 2026.7) ends in an assertion where it closes a worker that it is
            # just starting again: whatever the sweep had to say would be lost.
            with suppress(TimeoutError):
                client.wait_for_workers(workers, timeout=RESTART_SECONDS)


def _connect(scheduler: str) -> Client:
    try:
        _check_address(scheduler)
        # No default: a client that never connected would be asked for all of this process' Dask
        # work, such as reading a cube, and never answer.
        return Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers ({error})",
            where=f"scheduler {scheduler}",
            advice="start one with 'dask scheduler', and give its address, tcp://HOST:8786",
        ) from None


def _check_address(scheduler: str) -> None:
    """ValueError: no client can ever connect to this address.

    A client whose making ends in another error than OSError is never closed: as it goes, Dask
    waits 10 s for it, and prints a traceback (distributed 2026.7).
    """
    # Without a protocol it is Dask's default, tcp.
    protocol, place = parse_address(scheduler)
    get_backend(protocol)
    if protocol in ("tcp", "tls", "ws", "wss"):
        parse_host_port(place)
    # Certificates come from Dask's configuration, or from a function that it names.
    loader = dask.config.get("distributed.client.security-loader", None)
    known = loader or Security().get_connection_args("client").get("ssl_context")
    if protocol in ("tls", "wss") and not known:
        raise ValueError(f"{protocol} takes certificates, and Dask's configuration has none")


@contextmanager
def local_cluster(workers: int) -> Iterator[LocalCluster]:
    """A cluster of this process' own: whoever has not its certificate is turned away.

    Its ports are open to all users of this machine, and who may speak to Dask may run code in it.
    """
    start_tracker()
    with dask.config.set(NO_PAGES):
        try:
            with _keep_interrupts():
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    # Processes of one thread: Python's part of a block is one thread's work.
                    processes=True,
                    # No other machine can reach it; other users are kept out by the certificate.
                    host="127.0.0.1",
                    security=Security.temporary(),
                    dashboard_address="127.0.0.1:0",  # any port: other sweeps may run here
                    scheduler_kwargs={"dashboard": False},
                    env=make_local_environment(),
                    silence_logs=logging.CRITICAL,  # what fails is said once, by this process
                )
        except (RuntimeError, OSError) as error:
            raise RunError(
                f"local workers did not start ({error}), most often for lack of memory: "
                "use fewer workers"
            ) from error
        with cluster:
            yield cluster


def start_tracker() -> None:
    """Start Python's tracker of semaphores, silent: it would warn of workers that were killed."""
    usual = os.environ.get("PYTHONWARNINGS")
    # By the environment: the tracker is a process of its own.
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
