"""Deadlines of trainings: expected to be met, or with a required probability."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import Grid
from paradl.grids.reading.units import parse_duration
from paradl.kernels.arrays import Cells
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.names.arrays import Floats
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.answers.numbers import number
from paradl.sweep.configurations.degrees import Row
from paradl.sweep.configurations.fitting import read_chance
from paradl.sweep.configurations.row_cases import build_row_case
from paradl.sweep.uncertainty.probability import find_odds, find_spreads


@dataclass(frozen=True)
class Deadline:
    """A deadline [s] for training over some epochs; None: over those to the target.

    holds: required probability of meeting it; None: the expected time must meet it.
    """

    seconds: float
    epochs: float | None
    holds: float | None

    @classmethod
    def read(
        cls,
        deadline: float | str,
        holds: float | str | None,
        oracle: str,
        epochs: float | None = None,
    ) -> "Deadline":
        """Read what a user gave. InputError: not above 0, no probability, or one of Table III."""
        seconds = parse_duration(deadline, "deadline", "6 h")
        if holds is None:
            return cls(seconds, epochs, None)
        return cls(seconds, epochs, read_chance(holds, oracle))

    def can_be_met(self, times: Floats) -> NDArray[np.bool_]:
        """Whether expected times [s] allow to meet it; with at least even odds they must do so."""
        if self.holds is not None and self.holds < 0.5:
            return np.isfinite(times)
        return np.asarray(times <= self.seconds)

    def bound(self, times: Floats, answer: Answer) -> Floats:
        """Bound times [s], as the probability requires: the deadline is met if the bound is."""
        if self.holds is None:
            return times
        return np.asarray(times * np.exp(find_spreads(self.holds) * self.find_spread(answer)))

    def is_met(self, grid: Grid, row: Row, seconds: float) -> bool:
        """Whether the cell of a row, whose training is expected to take so long [s], meets it."""
        if self.holds is None or not self.can_be_met(np.array(seconds)):
            return seconds <= self.seconds
        return (self.find_chance(grid, row, seconds) or 0.0) >= self.holds

    def find_chance(
        self, grid: Grid, row: Row, seconds: float, spread: float | None = None
    ) -> float | None:
        """Find the probability that the cell of a row, expected to take so long [s], meets it.

        spread: of the logarithm of its time, where known. None for Table III, which has none.
        """
        if grid.spec.oracle == "paper":
            return None
        if spread is None:
            case = build_row_case(grid.ask_intervals(), row)
            spread = number(self.find_spread(answer_case(case)))
        return find_odds(math.log(self.seconds / seconds) / spread)

    def find_spread(self, answer: Answer) -> Cells:
        """Find the spread of the logarithm of the training time."""
        assert answer.spread is not None  # intervals were asked for
        if self.epochs is None and answer.train_spread is not None:
            return answer.train_spread
        return answer.spread.total
