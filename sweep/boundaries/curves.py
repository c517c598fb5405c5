"""Times of strategies along one parameter, with everything else fixed, and where they cross."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.parameters import DEFAULTS, PARAMETERS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Index
from paradl.grids.inputs.draws import DRAWS
from paradl.grids.reading.errors import InputError
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS
from paradl.sweep.answers.objectives import Aim
from paradl.sweep.boundaries.roots import close_in, span_values
from paradl.sweep.cells.space import Space
from paradl.sweep.configurations.row_cases import UPGRADABLE, answer_expected, read_value
from paradl.sweep.uncertainty.draws import draw_both_times, weigh_draws

# Most whole numbers along which crossovers are sought.
MOST_COUNTS = 2**16
# A continuous parameter is tried from a thousandth to a thousand times the system's value.
FAR = 1000.0
# Relative. Times that are equal in theory, such as those on one PE, differ by less.
ROUNDING = 1e-12


@dataclass(frozen=True)
class TimeCurve:
    """Times of a strategy along some values [s], NaN where forbidden, and the limits there."""

    time: Floats
    limit: NDArray[np.int64]
    communication: Floats


class Curves:
    """Times of all strategies along one parameter.

    cell: values of all other axes.
    """

    def __init__(self, space: Space, cell: Mapping[str, float], along: str, aim: Aim) -> None:
        self.space, self.cell, self.along, self.aim = space, cell, along, aim
        self._curves: dict[tuple[Index, bytes], TimeCurve] = {}
        self._drawn: dict[tuple[Index, bytes], tuple[Floats, Floats]] = {}

    def span(self, index: Index) -> Floats:
        """Values along which crossovers are sought."""
        given = self.space.axes.get(self.along)
        if PARAMETERS[self.along].whole:
            assert given is not None  # PE counts and batches are axes of every cube
            # A single value only says how far to look.
            return _list_counts(1.0 if given.size == 1 else given.min(), given.max())
        if given is not None and given.size > 1:
            return span_values(self.along, given.min(), given.max())
        value = self._read_value(index) if given is None else float(given[0])
        return span_values(self.along, value / FAR, value * FAR)

    def find(self, index: Index, values: Floats) -> TimeCurve:
        """Curve of a strategy, computed once for each span of values."""
        key = (index, values.tobytes())
        if key not in self._curves:
            self._curves[key] = self._compute(index, values)
        return self._curves[key]

    def close_in(self, first: Index, second: Index, low: float, high: float) -> int | float:
        """Value between `low` and `high` from which the first strategy is faster."""
        if PARAMETERS[self.along].whole:  # all numbers were tried, so none lies between
            return int(high)

        def leads(values: Floats) -> NDArray[np.bool_]:
            return is_ahead(*(self._compute(index, values).time for index in (first, second)))

        return close_in(leads, low, high)

    def draw_pair(
        self, first: Index, second: Index, values: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Values at which both strategies are feasible, and their times there [value, draw]."""
        times = [self.find(index, values).time for index in (first, second)]
        ours, theirs = self._draw(first, values)[0], self._draw(second, values)[1]
        both = np.isfinite(times[0]) & np.isfinite(times[1])
        # Equal strategies, as all are on one PE, also share their errors.
        same = ~is_ahead(times[0], times[1]) & ~is_ahead(times[1], times[0])
        theirs = np.where(same[:, None], ours, theirs)
        return values[both], ours[both], theirs[both]

    def _draw(self, index: Index, values: Floats) -> tuple[Floats, Floats]:
        """Times of a strategy [value, draw], as the first of a pair and as its rival."""
        # Drawn once, in however many pairs the strategy is.
        key = (index, values.tobytes())
        if key not in self._drawn:
            case = self._build(index, values)
            factor = weigh_draws(self.space.grid, index, case)
            ours, rivals = (
                np.broadcast_to(times.reshape(-1, DRAWS), (values.size, DRAWS)) * factor
                for times in draw_both_times(case)
            )
            self._drawn[key] = ours, rivals
        return self._drawn[key]

    def _compute(self, index: Index, values: Floats) -> TimeCurve:
        answer = answer_expected(self._build(index, values))
        epochs = 1.0 if answer.epochs is None else answer.epochs
        comp, comm, limit, factor = (
            np.broadcast_to(np.ravel(part), values.shape)
            for part in (answer.compute, answer.communication, answer.limit, epochs)
        )
        limit = limit.astype(np.int64)
        time = np.where((limit & FORBIDS) > 0, np.nan, (comp + comm) * factor)
        return TimeCurve(time, limit, comm * factor)

    def _build(self, index: Index, values: Floats) -> Case:
        """Case of a strategy along some values."""
        case = self.space.build_case(index, {**self.cell, self.along: values})
        labels = self.space.name(index)
        trains = self.aim.trains(self.space.grid, labels["model"], labels["dataset"])
        # With a law of epochs the best choice is that of the least time to the target.
        return case if trains else replace(case, training=None)

    def _read_value(self, index: Index) -> float:
        """Value of the parameter that the spec or the system states. InputError: none."""
        spec = self.space.grid.spec
        if self.along in spec.parameters:
            return float(spec.parameters[self.along])
        value = DEFAULTS.get(self.along, np.nan)
        if self.along in UPGRADABLE:
            # The machine has one value, whatever the strategy; layouts keep none of it.
            alone = self.space.build_case(index, self.cell, Strategy("serial"))
            value = read_value(alone, self.along)
        if not 0 < value < np.inf:
            raise InputError(
                f"this system has no {self.along} to start from",
                where="along",
                advice=f"give several values of {self.along}: its range",
            )
        return value


def is_ahead(ours: Floats, theirs: Floats) -> NDArray[np.bool_]:
    """True where one time is less than another by more than rounding; False for NaN."""
    ahead: NDArray[np.bool_] = ours < theirs * (1 - ROUNDING)
    return ahead


def _list_counts(low: float, high: float) -> Floats:
    """All whole numbers from `low` to `high`. InputError: too many."""
    if high - low >= MOST_COUNTS:
        raise InputError(
            f"expected at most {MOST_COUNTS:,} counts, got {high - low + 1:,.0f}",
            where="along",
            advice="select fewer",
        )
    return np.arange(low, high + 1)
