"""Search: the best layouts of a space, how many fit, and why the others do not.

The space is evaluated in blocks by several threads, since numpy releases the GIL. Of each block,
one byte per layout and its best layouts are kept; everything else is dropped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from typing import NamedTuple

import numpy as np

from paradl.kernels.arrays import use_numpy
from paradl.kernels.columns import Column, add, find_distinct, find_most
from paradl.kernels.machine.rates import Rates
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.oracle.block_times import IterationTimes
from paradl.kernels.parallelism.layout import find_marks, find_reasons
from paradl.kernels.search.candidates import DEGREES, SETTINGS, SHARED, LayoutProduct
from paradl.kernels.search.stacks import find_unsupported
from paradl.kernels.work.block_memory import measure_bucket, measure_stages
from paradl.kernels.work.layouts import COLUMNS, Layouts
from paradl.kernels.work.schedules import list_stages
from paradl.kernels.work.transformer import Training, Transformer

# Layouts per block: rules leave a third or less to evaluate, in arrays of some MB. A quarter of
# this size costs 1.6 times as much per layout: numpy calls take 10 ms per block (2 cores, 2026).
BLOCK = 2**20
# Outcomes of a layout: 0 no candidate, or one that a rule forbids, is too large, or fits.
FORBIDDEN, LARGE, FITS = 1, 2, 3
# Without times, layouts are scored by their remarks first, then by their number of parts.
REMARK = 2.0**32
# Factor on the scores of layouts that the software does not run: above the ratio of any others, and
# a power of two, so that these keep their order and ties.
LAST = 2.0**100


class Ranked(NamedTuple):
    """A list of layouts with their scores (lower is better) and memory on the fullest PE [B]."""

    layouts: Layouts
    score: Column
    memory: Column

    def select(self, rows: Column) -> "Ranked":
        """Select rows."""
        return Ranked(self.layouts.select(rows), self.score[rows], self.memory[rows])


class BlockResult(NamedTuple):
    """Result of a block.

    reasons: layouts that each rule forbids; alone: those that only this rule forbids. smallest: the
    candidate of least memory. least_large: least memory above the capacity [B]. best: layouts that
    may be among the best.
    """

    reasons: Counter[str]
    alone: Counter[str]
    smallest: Ranked
    least_large: float
    best: Ranked


@dataclass(frozen=True)
class Search:
    """A search for the best layouts of a space.

    capacity: memory of a PE [B]. speeds: rates of a PE, and the fabric, to rank layouts by time;
    None to rank by fewest remarks, then fewest parts. most: number of layouts to return, each at
    its best micro-batch; None for all. front: return the Pareto front of score and memory instead,
    over all micro-batches. stack: a row of STACKS; layouts that it does not run rank last.
    """

    net: Transformer
    space: LayoutProduct
    training: Training
    capacity: float
    pes_per_node: int
    speeds: tuple[Rates, Fabric] | None = None
    most: int | None = None
    threads: int = 2
    front: bool = False
    stack: str | None = None
    # Upper bound on the score of the best layouts, lowered as the search goes on.
    bar: list[float] = field(default_factory=lambda: [inf])

    @cached_property
    def outcomes(self) -> Column:
        """Outcome of each layout, filled by `run` [product]."""
        return np.zeros(self.space.layouts.shape, np.uint8)

    @cached_property
    def fits_bucket(self) -> Column:
        """Whether layouts also fit with ZeRO's bucket of gradients, filled by `run` [product]."""
        return np.zeros(self.space.layouts.shape, bool)

    def run(self) -> BlockResult:
        """Evaluate the whole space; the best layouts are sorted."""
        # Creates them before threads write to them.
        self.outcomes.fill(0)
        self.fits_bucket.fill(False)
        waiting: list[BlockResult] = []
        with ThreadPoolExecutor(self.threads) as pool:
            for part in pool.map(self.look_at, self._list_blocks()):
                waiting.append(part)
                # Joining lowers the bar for later blocks, but costs a ranking.
                if sum(len(block.best.layouts) for block in waiting) > 4 * self._limit:
                    waiting = [self._join(waiting)]
        return self._join(waiting)

    @property
    def _limit(self) -> float:
        """Most layouts to keep per block: the best ones at all micro-batches."""
        return inf if self.most is None else self.most * self.space.sizes[-1]

    def _list_blocks(self) -> Iterator[slice]:
        *settings, length = self.space.layouts.shape
        # A block holds all micro-batches of a layout, of which one is kept.
        micro = self.space.sizes[-1]
        step = max(BLOCK // prod(settings) // micro, 1) * micro
        return (slice(start, min(start + step, length)) for start in range(0, max(length, 1), step))

    def look_at(self, block: slice) -> BlockResult:
        """Evaluate a slice of the last axis, and write its outcomes."""
        with use_numpy():
            axis = len(self.space.layouts.shape) - 1
            layouts = self.space.layouts.take(block, axis)
            candidates = self.space.find_candidates(layouts)
            masks = find_reasons(self.net, layouts, self.training)
            # Rules are cheap and forbid most layouts; memory is next, and time last.
            number = add(mask.astype(np.uint8) for mask in masks.values())
            divides, alone = candidates & (number == 0), candidates & (number == 1)
            outcomes = self.outcomes[..., block]
            outcomes[...] = candidates
            rows = find_rows(divides)
            layouts, divides = layouts.take(rows, axis), divides[..., rows]
            memory = self.measure(layouts)
            # The nearest to fitting, for the message that nothing fits.
            smallest = np.min(memory, where=divides, initial=inf)
            fits = divides & (memory <= self.capacity)
            large = divides & ~fits
            outcomes[..., rows] += large + 2 * fits.astype(np.uint8)
            bucket = measure_bucket(self.net, layouts, self.training)
            self.fits_bucket[..., block][..., rows] = fits & (memory + bucket <= self.capacity)
            return BlockResult(
                Counter({name: count(mask & candidates) for name, mask in masks.items()}),
                Counter({name: count(mask & alone) for name, mask in masks.items()}),
                pick(layouts, divides & (memory == smallest), memory, memory),
                float(np.min(memory, where=large, initial=inf)),
                self._find_best(layouts, fits, memory),
            )

    def count_helped(self, *columns: str) -> int:
        """Count layouts that are too large, but would fit with another value of one setting, or
        with other degrees in exchange for data parallelism."""
        product = self.outcomes.reshape(*self.outcomes.shape[:-1], *self.space.sizes)
        fits, axis = product == FITS, len(SETTINGS)
        if "zero" in columns:  # whose temporaries may eat what a higher stage shares
            fits = self.fits_bucket.reshape(product.shape)
        if columns[0] not in DEGREES:
            axis = (*SETTINGS, *SHARED).index(columns[0])
            return count(fits.any(axis=axis, keepdims=True) & (product == LARGE))
        # Group the factorisations by their other degrees: one that fits helps its whole group.
        others = [name for name in DEGREES if name not in columns]
        sizes = self.space.sizes[0], -1
        degrees = (getattr(self.space.layouts, name).reshape(sizes) for name in others)
        _, place = find_distinct(*(column[:, 0] for column in degrees))
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        helped = np.logical_or.reduceat(fits.take(order, axis), starts, axis=axis)
        return count(helped.take(place, axis) & (product == LARGE))

    def count_recomputing(self) -> dict[int, int]:
        """Count layouts that are too large, but would fit with each set of recomputed modules, by
        RECOMPUTE bits."""
        helped = {}
        for number, bits in enumerate(self.space.layouts.recompute.ravel().tolist()):
            fits = self.outcomes.take([number], SETTINGS.index("recompute")) == FITS
            helped[bits] = count(fits & (self.outcomes == LARGE))
        return helped

    def count_ranked(self) -> int:
        """Count layouts that fit at some micro-batch."""
        fits = (self.outcomes == FITS).reshape(-1, self.space.sizes[-1])
        return count(fits.any(axis=1))

    def measure(self, layouts: Layouts) -> Column:
        """Memory on the fullest PE [B]."""
        stages = list_stages(self.net, layouts, self.training)
        measured = measure_stages(self.net, layouts, self.training, stages)
        return np.broadcast_to(find_most(size for _, size in measured), layouts.shape)

    def score(self, layouts: Layouts) -> Column:
        """Score of layouts: seconds per iteration, or remarks and parts; times LAST if the stack
        does not run them."""
        if self.speeds is None:
            score = REMARK * self._count_marks(layouts) + layouts.replica
        else:
            rates, fabric = self.speeds
            iteration = IterationTimes.from_layouts(self.net, layouts, self.training, rates, fabric)
            score = find_most(seconds for _, seconds in iteration.time_stages()) * rates.slowdown
        unsupported = find_unsupported(self.stack, self.net, layouts, self.training)
        scores: Column = np.where(unsupported, LAST * score, score)
        return scores

    def _count_marks(self, layouts: Layouts) -> Column:
        """Number of remarks on each layout."""
        marks = find_marks(self.net, layouts, self.training, self.pes_per_node)
        return add(mask.astype(int) for mask in marks.values())

    def _find_best(self, layouts: Layouts, fits: Column, memory: Column) -> Ranked:
        """Layouts that may be among the best."""
        rows = find_rows(fits)
        layouts, fits, memory = (
            layouts.take(rows, fits.ndim - 1),
            fits[..., rows],
            memory[..., rows],
        )
        # Keep equal scores: columns break ties, not the order of threads.
        score = self.score(layouts)
        good = fits & (score <= self.bar[0])
        if self.front:
            good[good] = is_front(score[good], memory[good])
        scores = score[good]
        if len(scores) > self._limit:
            good &= score <= np.partition(scores, int(self._limit) - 1)[int(self._limit) - 1]
        return pick(layouts, good, score, memory)

    def _join(self, parts: list[BlockResult]) -> BlockResult:
        """Merge the results of several blocks."""
        best = join(part.best for part in parts)
        if self.front:
            best = best.select(np.flatnonzero(is_front(best.score, best.memory)))
        best = self._rank(best)
        if self.most and len(best.score) == self.most:
            self.bar[0] = float(best.score[-1])
        smallest = join(part.smallest for part in parts)
        order = np.lexsort((*smallest.layouts.to_rows().T[::-1], smallest.memory))
        return BlockResult(
            sum((part.reasons for part in parts), Counter()),
            sum((part.alone for part in parts), Counter()),
            smallest.select(order[:1]),
            min(part.least_large for part in parts),
            best,
        )

    def _rank(self, found: Ranked) -> Ranked:
        """Sort layouts, best first, each at its best micro-batch; columns break ties.

        Without times the largest micro-batch with the fewest remarks is best: a larger one may
        starve the pipeline.
        """
        layouts, rows = found.layouts, found.layouts.to_rows()
        marks = self._count_marks(layouts)
        simple = (marks, layouts.replica, layouts.expert, layouts.recompute, layouts.zero)
        if self.speeds is None:
            ordered = np.lexsort((-layouts.micro, found.score))
            keys = (found.score, *simple, found.memory, *rows.T)
        else:
            keys = (found.score, *simple, *rows.T)
            ordered = np.lexsort(keys[::-1])
        if self.front:
            return found.select(ordered)
        # The first row of a layout has its best micro-batch.
        apart = rows[ordered][:, [name != "micro" for name in COLUMNS]]
        _, first = np.unique(apart, axis=0, return_index=True)
        chosen = ordered[np.sort(first)]
        if self.speeds is None:
            chosen = chosen[np.lexsort([key[chosen] for key in keys[::-1]])]
        return found.select(chosen[: self.most])


def is_front(score: Column, memory: Column) -> Column:
    """Mask of the Pareto front: no other layout is better in one and no worse in the other.

    A layout that the stack does not run is worse in both than all that it runs.
    """
    memory = np.where(score < LAST, memory, LAST * memory)
    # Sorted by score, each must have less memory than all before it.
    scores, place = np.unique(score, return_inverse=True)
    least = np.full(len(scores), inf)
    np.minimum.at(least, place, memory)
    before = np.minimum.accumulate(np.append(inf, least))[:-1]
    kept: Column = (memory == least[place]) & (least < before)[place]
    return kept


def count(mask: Column) -> int:
    """Number of true values."""
    return int(np.count_nonzero(mask))


def find_rows(mask: Column) -> Column:
    """Positions along the last axis with any true value."""
    return np.flatnonzero(mask.any(axis=tuple(range(mask.ndim - 1))))


def pick(layouts: Layouts, mask: Column, score: Column, memory: Column) -> Ranked:
    """List the layouts of a product where a mask is true."""
    return Ranked(layouts.list_rows(np.flatnonzero(mask)), score[mask], memory[mask])


def join(lists: Iterable[Ranked]) -> Ranked:
    """Concatenate lists."""
    layouts, scores, memory = zip(*lists, strict=True)
    rows = np.concatenate([part.to_rows() for part in layouts])
    return Ranked(Layouts.from_rows(rows), np.concatenate(scores), np.concatenate(memory))
