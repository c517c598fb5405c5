"""To disk: a whole sweep against Zarr alone, writing the same arrays into the same layout.

What Zarr writes was computed beforehand, and goes into a copy of the swept store's metadata:
chunks, shards and codecs are the same whatever the engine chose, and so are the files in the end.
"""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from filecmp import cmp
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import interleaved
from grids.grid import Grid
from kernels.options import OracleName
from sweep.cube.plan import Plan, plan_cube
from sweep.engine.progress import silent
from sweep.engine.run import Where, sweep

# Shares of the rate of one and of two writing threads; either is enough. CPU time bounds both: a
# block of 4.2 million cells (14 B each) takes 21 to 42 ms to write, by a sweep as by Zarr alone,
# and 10 to 16 ms to compute. Two cores that never wait reach 1.4 of the rate of one writing thread,
# and 0.7 of two.
RAW_SHARES = {1: 1.2, 2: 0.9}
# Values of the bandwidth axis: 48 blocks hide the time to create the store.
BANDWIDTHS, FEWER = 256, 64


@dataclass(frozen=True)
class Precomputed:
    """A finished store's metadata files, and all its variables in memory."""

    store: Path
    plan: Plan
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def from_store(cls, store: Path, grid: Grid) -> "Precomputed":
        """Read a finished store."""
        group = zarr.open_group(str(store), mode="r")
        arrays = {name: np.asarray(_array(group, name)[...]) for name in grid.spec.outputs}
        return cls(store, plan_cube(grid), arrays)


@dataclass(frozen=True)
class EndToEnd:
    """Cells a second: a process's first sweep, later ones, and Zarr alone by writing threads.

    effort: CPU seconds of a sweep over those of one writing thread.
    """

    first: float
    sweep: float
    raw: dict[int, float]
    share: dict[int, float]
    effort: float


def measure(effort: Effort) -> Report:
    """Sweep a cube by both oracles."""
    rows = [row for oracle in spaces.ORACLES for row in _measure_oracle(effort, oracle)]
    return Report("disk", "a sweep to disk, and Zarr alone writing the same arrays", tuple(rows))


def _measure_oracle(effort: Effort, oracle: OracleName) -> list[Row]:
    bandwidths = BANDWIDTHS if effort.rounds > 2 else FEWER
    grid = spaces.space(spaces.ALL[: effort.strategies], 1024, 64, bandwidths, oracle=oracle)
    result = end_to_end(grid, effort)
    cells = f"{oracle}, {np.prod(grid.shape):,} cells"
    zarr_rows = [
        Row(f"{cells}: {_raw_label(count)}", rate, "cells/s") for count, rate in result.raw.items()
    ]
    sweep_rows = [
        Row(
            f"{cells}: sweep",
            result.sweep,
            "cells/s",
            share,
            _raw_label(count),
            (at_least(share, RAW_SHARES[count]),),
        )
        for count, share in result.share.items()
    ]
    spent = Row(f"{cells}: sweep, CPU seconds", result.effort, "", result.effort, _raw_label(1))
    first = Row(f"{cells}: sweep, the first of its process", result.first, "cells/s")
    return [*zarr_rows, *sweep_rows, spent, first]


def _raw_label(threads: int) -> str:
    return "Zarr alone" if threads == 1 else f"Zarr alone, {threads} threads"


def end_to_end(grid: Grid, effort: Effort) -> EndToEnd:
    """Sweep, and write what was swept with one and two threads, in turn."""
    cells = int(np.prod(grid.shape))
    with TemporaryDirectory() as name:
        folder = Path(name)
        first = _seconds_of_first(grid, folder / "first.zarr")
        precomputed = Precomputed.from_store(folder / "first.zarr", grid)
        target = folder / "again.zarr"
        actions = {
            "sweep": partial(sweep, grid, str(target), False, Where(), silent),
            "1": partial(write_raw, precomputed, target, 1),
            "2": partial(write_raw, precomputed, target, 2),
        }
        timings = interleaved(actions, effort.rounds, partial(clear, target))
        clear(target)
        write_raw(precomputed, target, 1)
        check(precomputed, target)
    swept, raw = timings["sweep"], {count: timings[str(count)] for count in (1, 2)}
    return EndToEnd(
        first=cells / first,
        sweep=cells / swept.median,
        raw={count: cells / timing.median for count, timing in raw.items()},
        share={count: swept.rate_against(timing) for count, timing in raw.items()},
        effort=swept.effort_against(raw[1]),
    )


def write_raw(precomputed: Precomputed, target: Path, threads: int) -> None:
    """Write the arrays block by block, into a copy of the store's metadata."""
    copy_metadata(precomputed.store, target)
    group = zarr.open_group(str(target), mode="r+")
    with zarr.config.set({"array.write_empty_chunks": True}):  # as the engine does
        arrays = {name: _array(group, name) for name in precomputed.arrays}

    def write_block(block: int) -> None:
        region = precomputed.plan.find_region(block)
        for name, values in precomputed.arrays.items():
            arrays[name][region] = values[region]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write_block, range(precomputed.plan.blocks)))


def copy_metadata(store: Path, target: Path) -> None:
    """Every zarr.json of a store, none of its chunks."""
    for path in store.rglob("zarr.json"):
        copied = target / path.relative_to(store)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)


def check(precomputed: Precomputed, target: Path) -> None:
    """Both ways must have written the same files, or their rates do not compare."""
    for name in precomputed.arrays:
        swept = sorted((precomputed.store / name).rglob("*"))
        for path in filter(Path.is_file, swept):
            assert cmp(path, target / path.relative_to(precomputed.store), shallow=False), path


def _seconds_of_first(grid: Grid, store: Path) -> float:
    start = perf_counter()
    sweep(grid, str(store), False, Where(), silent)
    return perf_counter() - start


def clear(target: Path) -> None:
    """Nothing to overwrite, and no other's pages still on their way to the disk."""
    shutil.rmtree(target, ignore_errors=True)
    os.sync()


def _array(group: zarr.Group, name: str) -> "zarr.Array[Any]":
    array = group[name]
    assert isinstance(array, zarr.Array), name
    return array
