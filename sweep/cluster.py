"""Blocks on Dask: a cluster of local processes, or the workers of a running scheduler.

Only so many blocks are submitted as keep the workers busy, so that a cube of any number of blocks
neither stalls the scheduler nor fills its memory. Workers open the store by themselves: a task is
three short values.
"""

import logging
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TypeAlias

from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from grids.errors import InputError
from sweep.block import Execute, run_block
from sweep.errors import RunError
from sweep.store import Cube

Block: TypeAlias = "Future[int]"

# Blocks in flight for each worker thread: one at work, one waiting.
AHEAD = 2
CONNECT_SECONDS = 5

# One thread a worker: without this, XLA's own threads multiply with Dask's and all of them wait.
WORKER_ENVIRONMENT = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}


@contextmanager
def on_cluster(workers: int, scheduler: str | None) -> Iterator[Execute]:
    """A connected cluster, as a function that runs blocks and yields each when it is done."""
    with _client(workers, scheduler) as client:
        yield partial(_completed, client)


def _completed(client: Client, cube: Cube, blocks: list[int]) -> Iterator[int]:
    waiting = iter(blocks)

    def submit(count: int) -> list[Block]:
        return [
            client.submit(run_block, cube.location, cube.identity, block, pure=False)
            for block in islice(waiting, count)
        ]

    threads = max(1, sum(client.nthreads().values()))
    running = as_completed(submit(AHEAD * threads), loop=client.loop)
    for future in running:
        yield _block(future)
        running.update(submit(1))


def _block(future: Block) -> int:
    """The block that a worker has done."""
    try:
        return future.result()
    except KilledWorker as error:
        raise RunError(
            f"workers died at the same block, {error.allowed_failures + 1} times over; blocks that "
            "are done are kept: give workers more memory, and run the same command again"
        ) from error
    except CancelledError as error:
        raise RunError(
            "the Dask scheduler went away; blocks that are done are kept: run the command again"
        ) from error
    except (ImportError, RuntimeError) as error:
        raise RunError(
            f"a worker failed ({error}); do all workers have this paradl and its packages?"
        ) from error


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Client]:
    if scheduler is not None:
        with _connected(scheduler) as client:
            yield client
        return
    with _local(workers) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def _local(workers: int) -> LocalCluster:
    with _deaf_to_interrupts():
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any port: other sweeps may run on this machine
            env=WORKER_ENVIRONMENT,
            silence_logs=logging.CRITICAL,  # what fails is said once, by this process
        )


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C, which a terminal sends to them, too.

    They end with this process, which has something to say about it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change what a signal does
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def _connected(scheduler: str) -> Client:
    try:
        # No default: a client that never connected would be asked for all of this process' Dask
        # work, such as reading a cube, and never answer.
        return Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers ({error})",
            where=f"--scheduler {scheduler}",
            advice="start one with 'dask scheduler', and give its address, tcp://HOST:8786",
        ) from None
