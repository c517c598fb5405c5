"""Evaluate blocks with their summaries, against numpy filling buffers of the same size.

As in the engine, each core has a block of its own. Filling them from one thread is the fastest way
to write as many bytes on this machine.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import Action, interleaved
from grids.grid import Grid
from sweep.cube.variables import VARIABLES, Arrays
from sweep.engine.buffer_pool import SPARE
from sweep.engine.evaluation import fill
from sweep.engine.resources import cores

FILL_SHARE = 0.5
CELLS_PER_SECOND = 300e6


def measure(effort: Effort) -> Report:
    """Measure blocks of all sizes; goals hold for the largest, which is the engine's."""
    largest = effort.blocks[-1]
    grids = [(f"2**{size} cells", spaces.wide(size), size == largest) for size in effort.blocks]
    grids.append((f"2**{largest} cells, all dense", spaces.dense(largest), True))
    rows = [
        _measure_block(f"{name}, {label}", grid, position, effort, judged)
        for label, grid, judged in grids
        for position, name in enumerate(spaces.STRATEGIES)
    ]
    return Report("kernel", "evaluate blocks, one per core, into existing buffers", tuple(rows))


def _measure_block(what: str, grid: Grid, strategy: int, effort: Effort, judged: bool) -> Row:
    """Measure one strategy's blocks; with goals if `judged`."""
    shape, count = grid.shape[4:], cores()
    buffers = {name: np.ones(shape, VARIABLES[name].dtype) for name in grid.spec.outputs}
    blocks = [Block(grid, strategy) for _ in range(count)]

    def write_buffers() -> None:
        for _ in range(count):
            for buffer in buffers.values():
                buffer.fill(1)

    with ThreadPoolExecutor(count) as pool:
        actions: dict[str, Action] = {
            "blocks": partial(_run_all, pool, blocks),
            "fill": write_buffers,
        }
        timings = interleaved(actions, effort.short_rounds)
    rate = count * int(np.prod(shape)) / timings["blocks"].median
    share = timings["blocks"].rate_against(timings["fill"])
    goals = (at_least(share, FILL_SHARE), at_least(rate, CELLS_PER_SECOND, "cells/s"))
    return Row(what, rate, "cells/s", share, "numpy fill", goals if judged else ())


def _run_all(pool: ThreadPoolExecutor, blocks: list["Block"]) -> None:
    list(pool.map(lambda block: block(), blocks))


class Block:
    """One strategy's block on the first system, to be evaluated repeatedly."""

    def __init__(self, grid: Grid, strategy: int) -> None:
        self._grid, self._strategy = grid, strategy
        self._buffers = SPARE.take(1, grid.shape[4:], grid.spec.outputs)
        self._serial = np.ones(grid.shape[5:], np.float32)

    def __call__(self) -> None:
        position = (0, 0, 0, self._strategy)
        result = fill(self._buffers, 0, self._grid, position, self._grid.axes, self._serial)
        self._buffers, _ = jax.block_until_ready(result)

    def arrays(self) -> Arrays:
        """Evaluate the block and return its variables [numeric dims]."""
        self()
        return {name: np.array(values[0]) for name, values in self._buffers.items()}
