"""The kernel: a block's variables, evaluated and spread, against numpy's fill of the same buffers.

Fill is the fastest that these bytes can be written by one thread of this machine.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import interleaved
from grids.grid import Grid
from sweep import variables
from sweep.evaluate import evaluate

Buffers = dict[str, NDArray[Any]]

FILL_SHARE = 0.5
CELLS_PER_SECOND = 300e6


@dataclass(frozen=True)
class KernelRate:
    """A block's cells a second, and the part of the rate at which its buffers are filled."""

    cells: int
    rate: float
    fill_share: float


def measure(effort: Effort) -> Report:
    """Blocks of all sizes; the goals are those of the size that the engine writes, the largest."""
    largest = effort.blocks[-1]
    rows = [
        _row(f"{name}, 2**{size} cells", kernel_rate(grid, position, effort), size == largest)
        for size in effort.blocks
        for grid in [spaces.wide(size)]
        for position, name in enumerate(spaces.STRATEGIES)
    ]
    full = spaces.dense(largest)
    rows += [
        _row(f"{name}, 2**{largest} cells, all dense", kernel_rate(full, position, effort), True)
        for position, name in enumerate(spaces.STRATEGIES[:2])
    ]
    return Report("kernel", "evaluate a block into buffers that are there", tuple(rows))


def kernel_rate(grid: Grid, strategy: int, effort: Effort) -> KernelRate:
    """One strategy's block."""
    buffers = new_buffers(grid)
    timings = interleaved(
        {"engine": partial(fill_block, grid, strategy, buffers), "fill": partial(fill, buffers)},
        effort.short_rounds,
    )
    cells = block_cells(grid)
    engine = timings["engine"]
    return KernelRate(cells, cells / engine.median, engine.rate_against(timings["fill"]))


def new_buffers(grid: Grid) -> Buffers:
    """A buffer a variable, for one strategy."""
    shape = grid.shape[4:]
    return {name: np.ones(shape, variables.dtype(name)) for name in grid.spec.outputs}


def block_cells(grid: Grid) -> int:
    """Cells of one strategy."""
    return int(np.prod(grid.shape[4:]))


def fill_block(grid: Grid, strategy: int, buffers: Buffers) -> None:
    """Evaluate one strategy on the first system, and spread the answers into `buffers`."""
    found = evaluate(grid, (0, 0, 0, strategy))
    assert found is not None  # the space's model and dataset fit
    for name, values in found.items():
        np.copyto(buffers[name], values)


def fill(buffers: Buffers) -> None:
    """Write the same bytes without computing any."""
    for buffer in buffers.values():
        buffer.fill(1)


def _row(what: str, found: KernelRate, judged: bool) -> Row:
    goals = (
        at_least(found.fill_share, FILL_SHARE),
        at_least(found.rate, CELLS_PER_SECOND, "cells/s"),
    )
    return Row(
        what,
        found.rate,
        "cells/s",
        found.fill_share,
        "numpy fill",
        goals if judged else (),
    )
