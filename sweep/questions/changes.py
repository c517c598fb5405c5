"""Compare the cells that two cubes share, one part at a time: values, limits and winners."""

from itertools import groupby, product
from operator import itemgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS
from paradl.sweep.answers.types.cubes import ChangedLimits, ChangedWinner, ChangeFields
from paradl.sweep.cells.parts import Part, find_positions
from paradl.sweep.cells.space import write_axis
from paradl.sweep.cube.variables import Arrays

# Ratios are binned by the first 20 bits of a positive float32, 8 of the exponent and 12 of the
# fraction: that gives the median to 2**-13 (0.012 %) with 8 MB for any number of cells.
BINS, SHIFT = 2**20, 11


class Changes:
    """Differences between the values of one variable, accumulated over parts."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.changed = self.only_first = self.only_second = 0
        self.largest = 1.0
        self.where: dict[str, str | float] = {}
        self.counts = np.zeros(BINS, np.int64)

    def add(self, coordinates: Arrays, first: NDArray[Any], second: NDArray[Any]) -> None:
        """Count the differences of two parts; NaN in both is none."""
        has_first, has_second = ~np.isnan(first), ~np.isnan(second)
        self.only_first += int((has_first & ~has_second).sum())
        self.only_second += int((has_second & ~has_first).sum())
        a, b = first.astype(float), second.astype(float)
        # NaN compares as False: cells that only one cube has are counted above.
        differs = np.abs(a - b) > self.tolerance * np.maximum(np.abs(a), np.abs(b))
        self.changed += int(differs.sum())
        # Zeros have no ratio, such as the communication of one PE.
        at = np.flatnonzero(differs & (a > 0) & (b > 0))
        if at.size:
            self._add_ratios(coordinates, b.reshape(-1)[at] / a.reshape(-1)[at], at, first.shape)

    def _add_ratios(
        self, coordinates: Arrays, ratios: NDArray[Any], at: NDArray[Any], shape: tuple[int, ...]
    ) -> None:
        bits = ratios.astype(np.float32).view(np.uint32) >> SHIFT
        self.counts += np.bincount(bits, minlength=BINS)
        farthest = int(np.abs(np.log(ratios)).argmax())
        if not self.where or abs(np.log(ratios[farthest])) > abs(np.log(self.largest)):
            self.largest = float(ratios[farthest])
            place = np.unravel_index(at[farthest], shape)
            # Labels are Python objects, other values NumPy's, which JSON cannot write.
            self.where = {
                dim: values[i].item() if hasattr(values[i], "item") else str(values[i])
                for (dim, values), i in zip(coordinates.items(), place, strict=True)
            }

    def describe(self) -> ChangeFields:
        """Counts, median and largest ratio (None if no cell has a ratio), and where that is."""
        return {
            "changed": self.changed,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "median_ratio": self._find_median(),
            "largest_ratio": self.largest if self.where else None,
            "where": self.where or None,
        }

    def _find_median(self) -> float | None:
        """Median to half a bin, of two in the middle their mean; None without any ratio."""
        total = int(self.counts.sum())
        if not total:
            return None
        places = [(total + 1) // 2, total // 2 + 1]  # the same one if the number is odd
        bins = np.searchsorted(np.cumsum(self.counts), places).astype(np.uint32)
        return float((bins << SHIFT | 1 << (SHIFT - 1)).view(np.float32).mean(dtype=float))

    @property
    def is_same(self) -> bool:
        """True if no value differs."""
        return not (self.changed or self.only_first or self.only_second)


class Flips:
    """Differences between the limits of cells, accumulated over parts."""

    def __init__(self) -> None:
        self.counts: ChangedLimits = {
            "changed": 0,
            "became_feasible": 0,
            "became_infeasible": 0,
        }

    def add(self, first: Part, second: Part) -> None:
        """Count the differences of two parts."""
        self.counts["changed"] += int((first.arrays["limit"] != second.arrays["limit"]).sum())
        self.counts["became_feasible"] += int((second.feasible & ~first.feasible).sum())
        self.counts["became_infeasible"] += int((first.feasible & ~second.feasible).sum())


class Winners:
    """Least epoch time [model, dataset, system, *given, pe], and the position of its strategy, or
    -1 where no strategy is feasible.

    axes: values along all dimensions of the compared cells. given: names of the swept parameters of
    the machine or its software.
    """

    def __init__(self, axes: Arrays, given: list[str]) -> None:
        self.axes = axes
        self.place = (*LABELS[:3], *given, "pe")
        shape = tuple(len(axes[dim]) for dim in self.place)
        self.times, self.strategies = np.full(shape, np.inf), np.full(shape, -1)

    def add(self, part: Part) -> None:
        """Update the winners with the feasible cells of a part."""
        times = np.where(part.feasible & ~np.isnan(part.epoch_time), part.epoch_time, np.inf)
        dims = list(part.coordinates)
        kept = ("strategy", *self.place)
        # A planner chooses along the other axes, so the least time counts.
        rest = tuple(at for at, dim in enumerate(dims) if dim not in kept)
        order = [dim for dim in dims if dim in kept]
        least = times.min(axis=rest).transpose([order.index(dim) for dim in kept])
        at = {dim: find_positions(self.axes[dim], part.coordinates[dim]) for dim in dims}
        place = np.ix_(*(at[dim] for dim in self.place))
        # Strategies come first, and the earlier one keeps a tie.
        for times, strategy in zip(least, at["strategy"], strict=True):
            wins = times < self.times[place]
            self.times[place] = np.where(wins, times, self.times[place])
            self.strategies[place] = np.where(wins, strategy, self.strategies[place])


def list_changed_winners(first: Winners, second: Winners) -> list[ChangedWinner]:
    """One row for each range of PE counts over which the winners differ, in each place."""
    axes = first.axes
    rows: list[ChangedWinner] = []
    for place in product(*(range(len(axes[dim])) for dim in first.place[:-1])):
        labels = {
            dim: str(axes[dim][at]) if dim in LABELS else write_axis(dim, axes[dim][at])
            for dim, at in zip(first.place, place, strict=False)
        }
        pairs = zip(
            first.strategies[place].tolist(), second.strategies[place].tolist(), strict=True
        )
        runs = groupby(zip(axes["pe"].tolist(), pairs, strict=True), key=itemgetter(1))
        for (ours, theirs), run in runs:
            if ours != theirs:
                counts = [pe for pe, _ in run]
                row = {
                    **labels,
                    "from_pe": counts[0],
                    "to_pe": counts[-1],
                    "first": _name(axes, ours),
                    "second": _name(axes, theirs),
                }
                rows.append(cast(ChangedWinner, row))
    return rows


def _name(axes: Arrays, strategy: int) -> str | None:
    return None if strategy < 0 else str(axes["strategy"][strategy])
