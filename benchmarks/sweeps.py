"""Sweeps on this machine: to disk, against Zarr alone writing the same arrays, and without storing.

What Zarr writes was computed beforehand, and goes into a copy of the swept store's metadata:
chunks, shards and codecs are the same whatever the engine chose, and so are the files in the end.
Both are timed in turn and their rounds compared: a neighbour's load that lasts for seconds slows
both alike, and a shorter one falls out of the median.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from filecmp import cmp
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from benchmarks.report import Effort, Report, Row, at_least
from paradl.grids.design_space import ONLY, Configuration
from paradl.grids.grid import Grid
from paradl.grids.inputs.case import find_space
from paradl.kernels.options import OracleName
from paradl.kernels.search.ranking import Tally
from paradl.sweep.cube.plan import Plan, plan_cube
from paradl.sweep.cube.store import get_array
from paradl.sweep.engine.progress import silent
from paradl.sweep.engine.run import Where, read_grid, sweep

# Strategies whose closed forms, layers and limits differ most, in blocks of 2**22 cells.
EIGHT = (
    *("data", "data+filter", "spatial", "pipeline"),
    *("filter", "channel", "data+spatial", "data+pipeline"),
)
ALL = (*EIGHT, "serial", "data+channel", "data+filter:group=8", "data+spatial:group=8")
TRANSFORMERS = ("llama2_70b", "deepseek_v3")
ORACLES: tuple[OracleName, ...] = ("paper", "machine")

# Shares of the rate of one and of two writing threads; either is enough. CPU time bounds both: a
# block of 4.2 million cells (14 B each) takes 21 to 42 ms to write, by a sweep as by Zarr alone,
# and 10 to 16 ms to compute. Two cores that never wait reach 1.4 of the rate of one writing thread,
# and 0.7 of two.
RAW_SHARES = {1: 1.2, 2: 0.9}
# Values of the bandwidth axis: 48 blocks hide the time to create the store.
BANDWIDTHS, FEWER = 256, 64
# "A billion cells in a few seconds": five.
SEARCHED_PER_SECOND = 200e6

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Timing:
    """Seconds of each round: elapsed, and of CPU."""

    seconds: NDArray[np.float64]
    cpu: NDArray[np.float64]


def make_space(
    strategies: tuple[str, ...], pes: int, bandwidths: int, oracle: OracleName = "paper"
) -> Grid:
    """Make a space of ResNet-50: PE counts and 64 batches from 1 up, and bandwidths."""
    axes = {
        "model": "resnet50",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": list(strategies),
        "pe": {"range": [1, pes]},
        "batch": {"range": [1, 64]},
        "inter_bandwidth": {"geomspace": [1e9, 1e12, bandwidths]},
    }
    # A quarter of the memory, so that some cells fit and some do not.
    parameters = {"gamma": 0.25} if oracle == "paper" else {"memory_capacity": "4 GB"}
    return read_grid({"oracle": oracle, "axes": axes, "parameters": parameters})


def measure_disk(effort: Effort) -> Report:
    """Sweep a cube by both oracles."""
    rows = [row for oracle in ORACLES for row in _measure_oracle(effort, oracle)]
    return Report("disk", "a sweep to disk, and Zarr alone writing the same arrays", tuple(rows))


def _measure_oracle(effort: Effort, oracle: OracleName) -> list[Row]:
    """Sweep, and write what was swept with one and two threads, in turn."""
    bandwidths = BANDWIDTHS if effort.rounds > 2 else FEWER
    grid = make_space(ALL[: effort.strategies], 1024, bandwidths, oracle)
    cells = int(np.prod(grid.shape))
    label, zarrs = f"{oracle}, {cells:,} cells", {1: "Zarr alone", 2: "Zarr alone, 2 threads"}
    with TemporaryDirectory() as name:
        store, target = Path(name) / "first.zarr", Path(name) / "again.zarr"
        first, _ = _time(partial(_sweep, grid, store))
        actions: dict[str, Callable[[], None]] = {"sweep": partial(_sweep, grid, target)}
        actions |= {what: _prepare_writes(grid, store, target, n) for n, what in zarrs.items()}
        timings = _alternate(actions, effort.rounds, target)
        actions[zarrs[1]]()
        _check_files(store, target, grid.spec.outputs)
    swept = timings.pop("sweep")
    rows = [Row(f"{label}: {what}", _rate(cells, raw), "cells/s") for what, raw in timings.items()]
    for threads, least in RAW_SHARES.items():
        share = float(np.median(timings[zarrs[threads]].seconds / swept.seconds))
        goals, rate = (at_least(share, least),), _rate(cells, swept)
        rows.append(Row(f"{label}: sweep", rate, "cells/s", share, zarrs[threads], goals))
    spent = float(np.median(swept.cpu / timings[zarrs[1]].cpu))
    rows.append(Row(f"{label}: sweep, CPU seconds", spent, "", spent, zarrs[1]))
    rows.append(Row(f"{label}: sweep, the first of its process", cells / first, "cells/s"))
    return rows


def measure_search(effort: Effort) -> Report:
    """All strategies over large blocks, reduced to their answers; all layouts of transformers."""
    grid = make_space(ALL, effort.searched, 64).drop_outputs()
    cells = int(np.prod(grid.shape))
    with TemporaryDirectory() as name:
        store = Path(name) / "answers.zarr"
        timings = _alternate({"search": partial(_sweep, grid, store)}, effort.rounds, store)
    rate = _rate(cells, timings["search"])
    goals = (at_least(rate, SEARCHED_PER_SECOND, "cells/s"),)
    row = Row(f"{cells:,} cells", rate, "cells/s", goals=goals)
    layouts = [_search_layouts(model, min(effort.rounds, 3)) for model in TRANSFORMERS]
    title = "a space reduced to its answers (--reduce-only), no cell stored"
    return Report("search", title, (row, *layouts))


def _search_layouts(model: str, rounds: int) -> Row:
    """Search all layouts of a model on 1,024 PEs."""
    asked = Configuration(
        *(model, "layouts", 1024), system="dgx-h100", global_batch=2048, sequence=8192
    )
    taken, tally = [], Tally()
    for _ in range(rounds):
        space, tally = asked.grid().build(find_space, ONLY, None, None), Tally()
        assert space is not None
        _, cpu = _time(partial(space.search, 1000, tally))
        taken.append(cpu)
    rate, note = tally.candidates / min(taken), f"{tally.candidates:,} candidates"
    return Row(f"layouts of {model}", rate, "layouts/CPU-s", note=note)


def _sweep(grid: Grid, store: Path) -> None:
    sweep(grid, str(store), False, Where(), silent)


def _rate(cells: int, timing: Timing) -> float:
    return cells / float(np.median(timing.seconds))


def _alternate(
    actions: Mapping[str, Callable[[], None]], rounds: int, target: Path
) -> dict[str, Timing]:
    """Time each action once per round, after an uncounted first round that compiles.

    Each round starts with another action, so that none always follows the same one. Nothing is left
    to overwrite, and no other's pages are on their way to the disk.
    """
    order = list(actions)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in order}
    for number in range(rounds + 1):
        first = number % len(order)
        for name in order[first:] + order[:first]:
            shutil.rmtree(target, ignore_errors=True)
            os.sync()
            seconds = _time(actions[name])
            if number > 0:
                taken[name].append(seconds)
    return {name: Timing(*np.array(pairs).T) for name, pairs in taken.items()}


def _time(action: Callable[[], object]) -> tuple[float, float]:
    clock, cpu = perf_counter(), process_time()
    action()
    return perf_counter() - clock, process_time() - cpu


def _prepare_writes(grid: Grid, store: Path, target: Path, threads: int) -> Callable[[], None]:
    """Read a finished store; writing it is the action."""
    group = zarr.open_group(str(store), mode="r")
    arrays = {name: np.asarray(get_array(group, name)[...]) for name in grid.spec.outputs}
    return partial(_write_raw, plan_cube(grid), arrays, store, target, threads)


def _write_raw(plan: Plan, values: Arrays, store: Path, target: Path, threads: int) -> None:
    """Write the arrays block by block, into a copy of the store's metadata."""
    for path in store.rglob("zarr.json"):
        copied = target / path.relative_to(store)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
    group = zarr.open_group(str(target), mode="r+")
    with zarr.config.set({"array.write_empty_chunks": True}):  # as the engine does
        arrays = {name: get_array(group, name) for name in values}

    def write_block(block: int) -> None:
        region = plan.find_region(block)
        for name, cells in values.items():
            arrays[name][region] = cells[region]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write_block, range(plan.blocks)))


def _check_files(store: Path, target: Path, names: Iterable[str]) -> None:
    """Both ways must have written the same files, or their rates do not compare."""
    for name in names:
        for path in filter(Path.is_file, (store / name).rglob("*")):
            assert cmp(path, target / path.relative_to(store), shallow=False), path
