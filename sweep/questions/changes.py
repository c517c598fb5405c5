"""Changes between two arrays of the same cells, counted a part at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweep.cube.variables import Arrays
from sweep.questions.parts import Part

# Ratios are counted by the first bits of a float32, 8 of its exponent and 12 of its fraction: a
# median to 2**-13, 0.012 %, from 8 MB however many cells there are.
BINS, SHIFT = 2**20, 11


class Changes:
    """How the values of one variable differ."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.changed = self.only_first = self.only_second = 0
        self.largest = 1.0
        self.where: dict[str, Any] = {}
        self.counts = np.zeros(BINS, np.int64)

    def add(self, coordinates: Arrays, first: NDArray[Any], second: NDArray[Any]) -> None:
        """Count two parts; NaN in both is no difference."""
        has_first, has_second = ~np.isnan(first), ~np.isnan(second)
        self.only_first += int((has_first & ~has_second).sum())
        self.only_second += int((has_second & ~has_first).sum())
        a, b = first.astype(float), second.astype(float)
        # False where either is NaN.
        differs = np.abs(a - b) > self.tolerance * np.maximum(np.abs(a), np.abs(b))
        self.changed += int(differs.sum())
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
            self.where = {
                dim: values[i].item() if hasattr(values[i], "item") else str(values[i])
                for (dim, values), i in zip(coordinates.items(), place, strict=True)
            }

    def describe(self) -> dict[str, Any]:
        """As plain data: counts, ratios (None: nothing changed that has any), and where."""
        return {
            "changed": self.changed,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "median_ratio": self._find_median(),
            "largest_ratio": self.largest if self.where else None,
            "where": self.where or None,
        }

    def _find_median(self) -> float | None:
        """The middle of the bin that the median lies in."""
        total = int(self.counts.sum())
        if not total:
            return None
        middle = int(np.searchsorted(np.cumsum(self.counts), (total + 1) // 2))
        half = np.uint32(middle << SHIFT | 1 << (SHIFT - 1))
        return float(half.view(np.float32))

    @property
    def is_same(self) -> bool:
        """Whether no value differs."""
        return not (self.changed or self.only_first or self.only_second)


class Flips:
    """How what forbids cells differs."""

    def __init__(self) -> None:
        self.changed = self.became_feasible = self.became_infeasible = 0

    def add(self, first: Part, second: Part) -> None:
        """Count two parts."""
        self.changed += int((first.arrays["limit"] != second.arrays["limit"]).sum())
        self.became_feasible += int((second.feasible & ~first.feasible).sum())
        self.became_infeasible += int((first.feasible & ~second.feasible).sum())
