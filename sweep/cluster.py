"""Blocks on Dask: a cluster of local processes, or the workers of a running scheduler.

Only so many blocks are submitted as keep the workers busy, so that a cube of any number of blocks
neither stalls the scheduler nor fills its memory. Workers open the store by themselves: a task is three
short values.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from distributed import Client, LocalCluster, as_completed

from grids.errors import InputError
from sweep.block import run_block
from sweep.store import Cube

# Blocks in flight for each worker thread: one at work, one waiting.
AHEAD = 2
CONNECT_SECONDS = 10

# One thread a worker: without this, XLA's own threads multiply with Dask's and all of them wait.
WORKER_ENVIRONMENT = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}


def on_cluster(cube: Cube, blocks: list[int], workers: int, scheduler: str | None) -> Iterator[int]:
    """The blocks, in the order in which they are done."""
    with _client(workers, scheduler) as client:
        yield from _completed(client, cube, blocks)


def _completed(client: Client, cube: Cube, blocks: list[int]) -> Iterator[int]:
    waiting = iter(blocks)

    def submit(count: int) -> list[object]:
        return [
            client.submit(run_block, cube.url, cube.identity, block, pure=False)
            for block in islice(waiting, count)
        ]

    threads = max(1, sum(client.nthreads().values()))
    running = as_completed(submit(AHEAD * threads))
    for future in running:
        yield future.result()
        running.update(submit(1))


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Client]:
    if scheduler is not None:
        with _connected(scheduler) as client:
            yield client
        return
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            env=WORKER_ENVIRONMENT,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _connected(scheduler: str) -> Client:
    try:
        return Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers ({error})",
            where=f"--scheduler {scheduler}",
            advice="start one with 'dask scheduler', and give its address, tcp://HOST:8786",
        ) from None
