"""The engine against a numpy broadcast of the same formulas, which it must agree with."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.kernel import Block, block_cells, new_buffers
from benchmarks.numpy_formulas import FORMULAS, Arrays, Axes
from benchmarks.report import Report, Row
from benchmarks.timing import Action, interleaved
from grids.grid import Grid

TOLERANCE = 1e-5


@dataclass(frozen=True)
class BroadcastRate:
    """Cells a second of a numpy broadcast, and the engine's rate as a multiple of it."""

    numpy: float
    engine: float
    speedup: float


def measure(effort: Effort) -> Report:
    """Both strategies that are written out, in blocks of the engine's size."""
    grid = spaces.wide(22)
    rows: list[Row] = []
    for position, name in enumerate(FORMULAS):
        result = broadcast_rate(grid, position, effort)
        rows += [
            Row(f"{name}: numpy", result.numpy, "cells/s"),
            Row(f"{name}: engine", result.engine, "cells/s", result.speedup, "numpy"),
        ]
    return Report("numpy", "a numpy broadcast of the same formulas", tuple(rows))


def broadcast_rate(grid: Grid, strategy: int, effort: Effort) -> BroadcastRate:
    """Both fill a block that is there."""
    buffers = new_buffers(grid)
    check(grid, strategy)
    actions: dict[str, Action] = {
        "numpy": partial(_fill_by_numpy, grid, strategy, buffers),
        "engine": Block(grid, strategy),
    }
    timings = interleaved(actions, effort.rounds)
    cells, engine = block_cells(grid), timings["engine"]
    numpy = timings["numpy"]
    return BroadcastRate(cells / numpy.median, cells / engine.median, engine.rate_against(numpy))


def check(grid: Grid, strategy: int) -> None:
    """A rival that computes something else is none."""
    result = Block(grid, strategy).arrays()
    for name, values in by_numpy(grid, strategy).items():
        expected = np.broadcast_to(values, result[name].shape)
        np.testing.assert_allclose(result[name], expected, rtol=TOLERANCE, err_msg=name)


def by_numpy(grid: Grid, strategy: int) -> Arrays:
    """The formulas' answers for one strategy of the first system."""
    work = grid.workload(0, 0, 0)
    assert work is not None  # the space's model and dataset fit
    axes = Axes.from_values(grid.axes, grid.spec.parameters["gamma"])
    return FORMULAS[grid.strategies[strategy].label](work, axes)


def _fill_by_numpy(grid: Grid, strategy: int, buffers: Arrays) -> None:
    for name, values in by_numpy(grid, strategy).items():
        np.copyto(buffers[name], values)
