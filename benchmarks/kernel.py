"""The kernel: a block's variables and summary, against numpy's fill of buffers of the same size.

Fill is the fastest that these bytes can be written by one thread of this machine.
"""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import interleaved
from grids.grid import Grid
from sweep import variables
from sweep.buffers import SPARE
from sweep.fill import fill
from sweep.variables import Arrays

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
        {"engine": Block(grid, strategy), "fill": partial(only_write, buffers)},
        effort.short_rounds,
    )
    cells = block_cells(grid)
    engine = timings["engine"]
    return KernelRate(cells, cells / engine.median, engine.rate_against(timings["fill"]))


def new_buffers(grid: Grid) -> Arrays:
    """An array a variable, for one strategy."""
    shape = grid.shape[4:]
    return {name: np.ones(shape, variables.dtype(name)) for name in grid.spec.outputs}


def block_cells(grid: Grid) -> int:
    """Cells of one strategy."""
    return int(np.prod(grid.shape[4:]))


class Block:
    """One strategy's block on the first system, evaluated and summarised again and again."""

    def __init__(self, grid: Grid, strategy: int) -> None:
        self._grid, self._index = grid, (0, 0, 0, strategy)
        self._buffers = SPARE.take(1, grid.shape[4:], grid.spec.outputs)
        self._serial = np.ones(grid.shape[5:], np.float32)

    def __call__(self) -> None:
        self._buffers, summary = fill(
            self._buffers, 0, self._grid, self._index, self._grid.axes, self._serial
        )
        jax.block_until_ready((self._buffers, summary))

    def arrays(self) -> Arrays:
        """The block's variables [numeric dims], as they are now."""
        self()
        return {name: np.array(values[0]) for name, values in self._buffers.items()}


def only_write(buffers: Arrays) -> None:
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
