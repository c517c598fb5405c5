"""A mixed-integer program, row by row: minimise c v, with low <= A v <= high."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class Rows:
    """Variables are numbered as they come; a row maps them to their coefficients."""

    cost: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def add_variable(
        self, low: float, high: float, *, cost: float = 0.0, whole: bool = False
    ) -> int:
        """The number of a further variable."""
        for column, value in zip((self.cost, self.low, self.high), (cost, low, high), strict=True):
            column.append(value)
        self.whole.append(int(whole))
        return len(self.cost) - 1

    def add_flag(self, low: int = 0, high: int = 1) -> int:
        """The number of a further variable that is 0 or 1."""
        return self.add_variable(low, high, whole=True)

    def add_row(
        self, terms: Mapping[int, float], low: float = -np.inf, high: float = np.inf
    ) -> None:
        """low <= the sum of the terms <= high."""
        self.rows.append((dict(terms), low, high))

    def as_arrays(self) -> dict[str, Floats]:
        """The program as plain arrays, which a solver in another process takes."""
        entries = [
            (row, column, value)
            for row, (terms, _, _) in enumerate(self.rows)
            for column, value in terms.items()
        ]
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        return {
            "cost": np.array(self.cost),
            "low": np.array(self.low),
            "high": np.array(self.high),
            "whole": np.array(self.whole, float),
            "rows": np.array(rows, float),
            "columns": np.array(columns, float),
            "values": np.array(values, float),
            "row_low": np.array([low for _, low, _ in self.rows]),
            "row_high": np.array([high for _, _, high in self.rows]),
        }
