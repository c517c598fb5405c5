"""Scale-out: two Dask workers of one thread against one, both started and warm.

Starting processes is left out: it is a constant, and a large cube's share of it is small. Two bare
loops against one, in turn with the sweeps, tell how much of a second core others left in this run.
"""

import logging
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from distributed import LocalCluster

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import Action, interleaved
from sweep.engine.dask_executor import WORKER_ENVIRONMENT
from sweep.engine.progress import silent
from sweep.engine.run import Where, sweep

SPEEDUP = 1.7

LOOP = "for _ in range(30_000_000): pass"  # about a second


@dataclass(frozen=True)
class WorkerRate:
    """Cells a second of one worker and of two; `ceiling`: what two bare loops gain over one."""

    one: float
    two: float
    speedup: float
    ceiling: float


def measure(effort: Effort) -> Report:
    """One worker, two workers."""
    result = worker_rate(effort)
    goals = (at_least(result.speedup, SPEEDUP),)
    note = f"two bare loops: {result.ceiling:.3g}"
    rows = (
        Row("one worker", result.one, "cells/s"),
        Row("two workers", result.two, "cells/s", result.speedup, "one worker", goals, note),
    )
    return Report("workers", "Dask workers of one thread each", rows)


def worker_rate(effort: Effort) -> WorkerRate:
    """Both clusters stand all the while: the one that has nothing to do takes no time."""
    # Two systems: twice as many blocks as strategies, so that two workers end at about one time.
    strategies = spaces.ALL[: effort.strategies]
    grid = spaces.space(strategies, 1024, 256, 64, systems=("abci", "dgx1-v100"))
    with ExitStack() as stack:
        store = Path(stack.enter_context(TemporaryDirectory())) / "cube.zarr"
        clusters = {str(n): stack.enter_context(_cluster(n)) for n in (1, 2)}
        actions: dict[str, Action] = {
            name: partial(
                sweep, grid, str(store), False, Where(scheduler=cluster.scheduler_address), silent
            )
            for name, cluster in clusters.items()
        }
        actions |= {"loop": partial(_loops, 1), "loops": partial(_loops, 2)}
        clear = partial(shutil.rmtree, store, ignore_errors=True)
        timings = interleaved(actions, effort.rounds, clear)
    cells, one, two = int(np.prod(grid.shape)), timings["1"], timings["2"]
    return WorkerRate(
        one=cells / one.median,
        two=cells / two.median,
        speedup=two.rate_against(one),
        ceiling=2 * timings["loops"].rate_against(timings["loop"]),
    )


def _loops(count: int) -> None:
    """So many processes at once that do nothing but count."""
    processes = [subprocess.Popen((sys.executable, "-c", LOOP)) for _ in range(count)]
    for process in processes:
        process.wait()


def _cluster(workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        env=WORKER_ENVIRONMENT,
        silence_logs=logging.CRITICAL,
    )
