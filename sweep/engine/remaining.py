"""Time left in a sweep, by how long the blocks of each strategy took so far.

In four recorded sweeps with nothing compiled before (tests/sweep/engine/test_remaining.py) it
is first stated after a fifth to a half of the blocks, as 0.4 to 4 times what was left. The mean of
all blocks but the first said 2 to 158 times.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import prod
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy comes with it, which waiting needs none of
    from sweep.cube.plan import Plan

# [s] Blocks of a model and a data set that do not fit take less.
SKIPPED = 1e-3
# Seconds per cell, and cells, of a block.
Rates = Sequence[tuple[float, int]]


class Remaining:
    """Blocks finished so far, with the seconds of their ends. done: blocks of an earlier run."""

    def __init__(self, plan: "Plan", done: int, clock: Callable[[], float] = monotonic) -> None:
        self._plan, self._done, self._clock = plan, done, clock
        self._ends: list[float] = []
        self._axis = plan.dims.index("strategy")
        size, width = plan.shape[self._axis], plan.shard[self._axis]
        # Cells left by the first strategy of a block, and rates of its blocks.
        self._left = {
            first: plan.cells // size * min(width, size - first) for first in range(0, size, width)
        }
        self._rates: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for block in range(done):  # a run that is resumed went in order
            self._take(block)

    @property
    def finished(self) -> int:
        """Number of blocks, with those of an earlier run."""
        return self._done + len(self._ends)

    def advance(self, block: int) -> None:
        """Note the end of a block."""
        self._ends.append(self._clock())
        first, cells = self._take(block)
        # The first block ends after everything has started. Two blocks at work end at about the
        # same time: the sum of such differences is right.
        if len(self._ends) > 1 and (taken := self._ends[-1] - self._ends[-2]) >= SKIPPED:
            self._rates[first].append((taken / cells, cells))

    def estimate(self) -> float | None:
        """Return the seconds left; None until two blocks of some strategies have been timed."""
        # The longest waits for programs to compile.
        known = list(self._rates.items())  # a copy: blocks end in another thread
        timed = {first: sorted(some)[:-1] for first, some in known if len(some) > 1}
        if not timed:
            return None
        rates = {first: _find_mean(some) for first, some in timed.items()}
        others = _find_mean([rate for some in timed.values() for rate in some])
        seconds = sum(rates.get(first, others) * cells for first, cells in self._left.items())
        fitting = sum(len(some) for _, some in known) / (len(self._ends) - 1)
        return max(0.0, fitting * seconds - (self._clock() - self._ends[-1]))

    def _take(self, block: int) -> tuple[int, int]:
        """Take a block from those left; return its first strategy, and its cells."""
        first = self._plan.find_region(block)[self._axis].start
        cells = count_cells(self._plan, block)
        self._left[first] -= cells
        return first, cells


def count_cells(plan: "Plan", block: int) -> int:
    """Count the cells of one block."""
    return prod(part.stop - part.start for part in plan.find_region(block))


def _find_mean(rates: Rates) -> float:
    return sum(rate * cells for rate, cells in rates) / sum(cells for _, cells in rates)
