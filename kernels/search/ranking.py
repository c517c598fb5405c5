"""Ranked candidates: which layouts of each cell to keep, and why the others are none."""

from collections import Counter
from dataclasses import dataclass, field, replace
from math import ceil, inf

import numpy as np

from paradl.kernels.columns import Column, find_distinct
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.parallelism.divided_blocks import Rules
from paradl.kernels.work.layouts import COLUMNS

# More micro-batches than any layout is tried with: powers of two up to the largest batch.
MOST_MICRO = 64


@dataclass(frozen=True)
class Ranked:
    """Candidate layouts, a row each, of the cells that they may be chosen for.

    rows: their columns. exists: whether degrees divide the PEs. forbidden: 0 where nothing forbids
    one, 1 where the software does not run it, more with each limit. value: what is minimised; NaN
    if undefined. memory: on the fullest PE [B].
    """

    rows: Column
    exists: Column
    cell: Column
    forbidden: Column
    value: Column
    memory: Column

    def take(self, numbers: Column) -> "Ranked":
        """Take rows by number."""
        return Ranked(*(column[numbers] for column in vars(self).values()))

    def join(self, other: "Ranked") -> "Ranked":
        """Append other candidates."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Ranked(*map(np.concatenate, pairs))

    def pick_best(self, most: int) -> "Ranked":
        """Take the best of each cell: those that least forbids, of these those of least value.

        most: number per cell; of several, each layout is at its best micro-batch. Of equals those
        of least memory, then the first are kept.
        """
        return self.take(self._order_best(most))

    def pick_together(self, most: int, weights: Column | int) -> "Ranked":
        """Take the best of all cells together, by value times weight; each keeps its cell."""
        of_one = replace(self, cell=np.zeros_like(self.cell), value=self.value * weights)
        return self.take(of_one._order_best(most))

    def _order_best(self, most: int) -> Column:
        last = np.where(np.isnan(self.value), inf, self.value)  # what is undefined
        order = np.lexsort((self.memory, last, self.forbidden, self.cell))
        if most > 1:
            order = self._keep_first(order, most * MOST_MICRO)  # fewer to compare
            others = np.delete(self.rows[order], COLUMNS.index("micro"), axis=1)
            _, place = find_distinct(self.cell[order], *others.T)
            _, first = np.unique(place, return_index=True)
            order = order[np.sort(first)]
        return self._keep_first(order, most)

    def _keep_first(self, order: Column, most: int) -> Column:
        """Keep the first of each cell, at most this many, of rows that are sorted by their cell."""
        _, starts, counts = np.unique(self.cell[order], return_index=True, return_counts=True)
        place = np.arange(len(order)) - np.repeat(starts, counts)
        kept: Column = order[place < most]
        return kept

    def pick_front(self) -> "Ranked":
        """Take the allowed ones that no other of their cell beats in both value and memory."""
        order = np.lexsort((self.memory, self.value, self.cell))
        order = order[(self.forbidden == 0)[order]]
        _, starts = np.unique(self.cell[order], return_index=True)
        memory = np.split(self.memory[order], starts[1:])
        # Sorted by value, each must have less memory than all before it.
        least = [np.minimum.accumulate(np.append(inf, part))[:-1] for part in memory]
        return self.take(order[self.memory[order] < np.concatenate(least)])


def find_likely(forbidden: Column, allowed: Column, cell: Column) -> Column:
    """Mask of candidates that may be picked: what nothing forbids, or least in their cell.

    forbidden, allowed: of a list, or of a product, whose last axis has the cells.
    """
    # Counts of limits have few bits, and numpy 2.5 refuses a larger number among them.
    known = np.where(allowed, forbidden.astype(int), np.iinfo(int).max)
    least_of = known.reshape(-1, cell.size).min(axis=0)
    least = np.full(int(cell.max(initial=-1)) + 1, np.iinfo(int).max)
    np.minimum.at(least, cell, least_of)
    likely: Column = allowed & (forbidden <= np.maximum(least[cell], 1))
    return likely


@dataclass
class Tally:
    """Counts of candidates: how many there are, how many fit, and what forbids the others.

    reasons: candidates that each rule forbids, and `memory` those that are only too large.
    remedies: what to change, by reason. least: the least memory of those that are too large [B].
    room: share of a PE's memory up to which layouts fit.
    """

    candidates: int = 0
    fitting: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    remedies: dict[str, str] = field(default_factory=dict)
    least: float = inf
    room: float = 1.0

    def add(self, limit: Column, memory: Column, rules: Rules, among: Column) -> None:
        """Count candidates by their flags, memory and broken rules. among: mask of these."""
        forbids = limit & FORBIDS
        large = among & (forbids == Limit.MEMORY)
        self.candidates += int(np.count_nonzero(among))
        self.fitting += int(np.count_nonzero(among & (forbids == 0)))
        self.count_rules(rules, among)
        self.reasons["memory"] += int(np.count_nonzero(large))
        self.least = min(self.least, float(np.min(memory, where=large, initial=inf)))
        # Rounded up, and above the rounded size of a PE that is too small by less than a digit.
        size = ceil(self.least / self.room / 1e8 + 0.5) / 10 if self.least < inf else inf
        self.remedies["memory"] = f"PEs of at least {size:,.1f} GB, or more of them"

    def count_rules(self, rules: Rules, among: Column | bool = True) -> None:
        """Count candidates that break rules. among: mask of those that count."""
        self.reasons.update(
            {name: int(np.count_nonzero(rule.mask & among)) for name, rule in rules.items()}
        )
        self.remedies |= {name: rule.remedy for name, rule in rules.items()}

    def join(self, other: "Tally", cells: int) -> None:
        """Add the counts of candidates that each of so many cells has."""
        self.candidates += cells * other.candidates
        self.reasons.update({name: cells * count for name, count in other.reasons.items()})
        self.remedies = other.remedies | self.remedies
