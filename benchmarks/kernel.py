"""The kernel: a block's variables and summary, against numpy's fill of buffers of the same size.

As the engine does, each core has a block of its own. Fill is the fastest that these bytes can be
written by one thread of this machine. `variables` is the same program without its summary.
"""

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from numpy.typing import NDArray

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import Action, interleaved
from grids.grid import Grid
from kernels.arrays import Cells
from kernels.blocks.fill import fill_buffers
from kernels.compiled import compiled
from kernels.configuration.case import Case
from sweep.cube.variables import VARIABLES, Arrays
from sweep.engine.buffer_pool import SPARE, Buffers
from sweep.engine.evaluation import fill
from sweep.engine.resources import cores

Fill = Callable[[Grid, int, Buffers, NDArray[np.float32]], tuple[Buffers, object]]

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
    grids = [(f"2**{size} cells", spaces.wide(size), size == largest) for size in effort.blocks]
    grids.append((f"2**{largest} cells, all dense", spaces.dense(largest), True))
    rows = [
        row
        for label, grid, judged in grids
        for position, name in enumerate(spaces.STRATEGIES)
        for row in _rows(f"{name}, {label}", grid, position, effort, judged)
    ]
    return Report("kernel", "evaluate blocks, one a core, into buffers that are there", tuple(rows))


def _rows(what: str, grid: Grid, strategy: int, effort: Effort, judged: bool) -> list[Row]:
    rates = kernel_rates(grid, strategy, effort)
    return [_row(f"{what}: {name}", rate, judged) for name, rate in rates.items()]


def kernel_rates(grid: Grid, strategy: int, effort: Effort) -> dict[str, KernelRate]:
    """One strategy's block, with its summary and without."""
    buffers, count = new_buffers(grid), cores()
    with ThreadPoolExecutor(count) as pool:
        kinds = {"variables": variables_alone, "with summary": with_summary}
        blocks = {
            name: [Block(grid, strategy, how) for _ in range(count)] for name, how in kinds.items()
        }
        actions: dict[str, Action] = {
            name: partial(_side_by_side, pool, some) for name, some in blocks.items()
        }
        actions["fill"] = partial(_several, count, partial(only_write, buffers))
        timings = interleaved(actions, effort.short_rounds)
    cells = block_cells(grid)
    return {
        name: KernelRate(
            cells, count * cells / timings[name].median, timings[name].rate_against(timings["fill"])
        )
        for name in blocks
    }


def _side_by_side(pool: ThreadPoolExecutor, blocks: list["Block"]) -> None:
    list(pool.map(lambda block: block(), blocks))


def _several(count: int, action: Action) -> None:
    for _ in range(count):
        action()


def new_buffers(grid: Grid) -> Arrays:
    """An array a variable, for one strategy."""
    shape = grid.shape[4:]
    return {name: np.ones(shape, VARIABLES[name].dtype) for name in grid.spec.outputs}


def block_cells(grid: Grid) -> int:
    """Cells of one strategy."""
    return int(np.prod(grid.shape[4:]))


def with_summary(
    grid: Grid, strategy: int, buffers: Buffers, serial: NDArray[np.float32]
) -> tuple[Buffers, object]:
    """As the engine does it."""
    return fill(buffers, 0, grid, (0, 0, 0, strategy), grid.axes, serial)


def variables_alone(
    grid: Grid, strategy: int, buffers: Buffers, serial: NDArray[np.float32]
) -> tuple[Buffers, object]:
    """The same, of which the compiler leaves out what makes the summary."""
    case = grid.case((0, 0, 0, strategy))
    assert case is not None
    return _fill_variables(buffers, case, serial[None], shape=grid.shape[4:]), ()


@compiled("shape", donated=("buffers",))
def _fill_variables(
    buffers: Buffers, case: Case, enough: Cells, *, shape: tuple[int, ...]
) -> Buffers:
    # The function itself: a small block's program is no part of another.
    trace: Callable[..., tuple[Buffers, object]] = inspect.unwrap(fill_buffers)
    return trace(buffers, 0, case, enough, shape=shape)[0]


class Block:
    """One strategy's block on the first system, evaluated again and again."""

    def __init__(self, grid: Grid, strategy: int, how: Fill = with_summary) -> None:
        self._grid, self._strategy, self._how = grid, strategy, how
        self._buffers = SPARE.take(1, grid.shape[4:], grid.spec.outputs)
        self._serial = np.ones(grid.shape[5:], np.float32)

    def __call__(self) -> None:
        result = self._how(self._grid, self._strategy, self._buffers, self._serial)
        self._buffers, _ = jax.block_until_ready(result)

    def arrays(self) -> Arrays:
        """The block's variables [numeric dims], as they are now."""
        self()
        return {name: np.array(values[0]) for name, values in self._buffers.items()}


def only_write(buffers: Arrays) -> None:
    """Write the same bytes without computing any."""
    for buffer in buffers.values():
        buffer.fill(1)


def _row(what: str, result: KernelRate, judged: bool) -> Row:
    goals = (
        at_least(result.fill_share, FILL_SHARE),
        at_least(result.rate, CELLS_PER_SECOND, "cells/s"),
    )
    return Row(
        what,
        result.rate,
        "cells/s",
        result.fill_share,
        "numpy fill",
        goals if judged else (),
    )
