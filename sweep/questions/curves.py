"""Curves: what strategies take along one parameter, and where one falls below another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import DEFAULTS, PARAMETERS
from grids.grid import Index
from grids.inputs.draws import DRAWS
from grids.models.layers import Floats
from grids.reading.errors import InputError
from grids.reading.units import format_quantity
from kernels.case import Case
from kernels.flags import FORBIDS
from kernels.oracle import answer_case
from sweep.cube.variables import name_limits
from sweep.questions.crossing_ranges import FEW, find_crossing_ranges
from sweep.questions.draws import draw_both_times, draw_epochs
from sweep.questions.objectives import Aim
from sweep.questions.space import Space
from sweep.questions.upgradable import UPGRADABLE, read_value

Row = dict[str, Any]

# Whole numbers along which crossovers are sought at once.
MOST_COUNTS = 2**16
# Of a continuous parameter: how far on either side of the system's own, and in how many steps.
FAR, STEPS = 1000.0, 240
# A bracket is divided into so many parts, so often: ln 1.06 / 240 ** 4 is 2e-11.
ROUNDS = 4
# Relative: of times that are equal in theory, as on one PE.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Curve:
    """A strategy's time along some values [s], NaN where it is forbidden; and what forbids it."""

    time: Floats
    limit: NDArray[np.int64]
    communication: Floats


class Curves:
    """What strategies take along one parameter, everything else fixed, by an aim."""

    def __init__(self, space: Space, cell: Mapping[str, float], along: str, aim: Aim) -> None:
        self.space, self.cell, self.along, self.aim = space, cell, along, aim
        self._known: dict[tuple[Index, bytes], Curve] = {}
        self._drawn: dict[tuple[Index, bytes], tuple[Floats, Floats]] = {}

    def compare(self, first: Index, second: Index) -> Row:
        """From where on the first is faster than the second, or why it never is."""
        values = self.span(first)
        ours, theirs = self.find(first, values), self.find(second, values)
        both = np.flatnonzero(~np.isnan(ours.time) & ~np.isnan(theirs.time))
        ahead = is_ahead(ours.time[both], theirs.time[both])
        changes = np.flatnonzero(ahead[1:] & ~ahead[:-1])
        brackets = [(values[both[n]], values[both[n + 1]]) for n in changes]
        at = [self._close_in(first, second, *bracket) for bracket in brackets]
        reason = None if at else self._tell_never(values, ours, theirs, both, ahead)
        return {"first": at[0] if at else None, "at": at, "reason": reason}

    def span(self, index: Index) -> Floats:
        """The values along which crossovers are sought."""
        given = self.space.axes.get(self.along)
        if PARAMETERS[self.along].whole:
            assert given is not None  # PE counts and batches are axes of every cube
            low = 1.0 if given.size == 1 else given.min()
            return _list_counts(low, given.max())
        if given is not None and given.size > 1:
            low, high = given.min(), given.max()
        else:
            own = self._read_own(index) if given is None else float(given[0])
            low, high = own / FAR, own * FAR
        parameter = PARAMETERS[self.along]
        return np.geomspace(max(low, parameter.low), min(high, parameter.high), STEPS + 1)

    def find(self, index: Index, values: Floats) -> Curve:
        """The curve of a strategy, computed once of each span."""
        key = (index, values.tobytes())
        if key not in self._known:
            self._known[key] = self._evaluate(index, values)
        return self._known[key]

    def find_ranges(self, first: Index, second: Index, cells: int) -> Row:
        """The ranges of the first crossover over draws, where there are few enough to draw."""
        values = self.span(first)
        several = {index for index in self.space.list_indices() if index[:2] == first[:2]}
        if self.space.grid.spec.oracle == "paper" or values.size * len(several) * cells > FEW:
            return {}
        times = [self.find(index, values).time for index in (first, second)]
        drawn = [self._draw(index, values)[n] for n, index in enumerate((first, second))]
        both = np.isfinite(times[0]) & np.isfinite(times[1])
        # On one PE strategies are the same thing, and have no errors of their own.
        same = ~is_ahead(times[0], times[1]) & ~is_ahead(times[1], times[0])
        theirs = np.where(same[:, None], drawn[0], drawn[1])
        whole = PARAMETERS[self.along].whole
        return find_crossing_ranges(values[both], drawn[0][both], theirs[both], whole)

    def _draw(self, index: Index, values: Floats) -> tuple[Floats, Floats]:
        """What a strategy takes [value, draw], as the first of a pair and as the second."""
        key = (index, values.tobytes())
        if key not in self._drawn:
            case = self._build(index, values)
            shape = (values.size, DRAWS)
            own, rival = (
                np.broadcast_to(each.reshape(-1, DRAWS), shape) for each in draw_both_times(case)
            )
            factor = self._weigh(index, values)[:, None]
            if self._trains(index):
                labels = self.space.name(index)
                law = self.space.grid.convergences[labels["model"], labels["dataset"]]
                answer = answer_case(replace(case, uncertainty=None))
                batches = np.broadcast_to(np.ravel(answer.global_batch), values.shape)
                factor = factor * draw_epochs(law, batches)
            self._drawn[key] = own * factor, rival * factor
        return self._drawn[key]

    def _trains(self, index: Index) -> bool:
        labels = self.space.name(index)
        return self.aim.trains(self.space.grid, labels["model"], labels["dataset"])

    def _weigh(self, index: Index, values: Floats) -> Floats:
        """The factor on the time of an epoch [value]: epochs, and what a PE-hour costs."""
        price = self.aim.find_price(self.space.name(index)["system"])
        factor = np.full(values.shape, 1.0 if self.aim.goal != "cost" else price)
        if self._trains(index):
            answer = answer_case(replace(self._build(index, values), uncertainty=None))
            assert answer.epochs is not None  # its case has a law
            factor = factor * np.ravel(answer.epochs)
        return factor

    def _build(self, index: Index, values: Floats) -> Case:
        """The case of a strategy along some values."""
        given = {name: np.array([each]) for name, each in self.cell.items()} | {self.along: values}
        # Numeric axes stand in the order of the table, whether the grid has this one or not.
        case = self.space.grid.case(
            index, {name: given[name] for name in PARAMETERS if name in given}
        )
        assert case is not None  # its samples fit
        return case if self._trains(index) else replace(case, training=None)

    def _evaluate(self, index: Index, values: Floats) -> Curve:
        answer = answer_case(replace(self._build(index, values), uncertainty=None))
        comp, comm, limit = (
            np.broadcast_to(np.ravel(each), values.shape)
            for each in (answer.compute, answer.communication, answer.limit)
        )
        forbidden = (limit.astype(np.int64) & FORBIDS) > 0
        factor = self._weigh(index, values)
        time = np.where(forbidden, np.nan, (comp + comm) * factor)
        return Curve(time, limit.astype(np.int64), comm * factor)

    def _close_in(self, first: Index, second: Index, low: float, high: float) -> int | float:
        """The value in a bracket from which on the first is faster."""
        if PARAMETERS[self.along].whole:
            return int(high)
        for _ in range(ROUNDS):
            values = (
                np.geomspace(low, high, STEPS + 1) if low > 0 else np.linspace(0, high, STEPS + 1)
            )
            ahead = is_ahead(*(self._evaluate(each, values).time for each in (first, second)))
            at = max(1, int(np.argmax(ahead)))
            low, high = float(values[at - 1]), float(values[at])
        return high

    def _read_own(self, index: Index) -> float:
        """The system's own value of the parameter."""
        grid = self.space.grid
        if self.along in grid.spec.parameters:
            return float(grid.spec.parameters[self.along])
        case = grid.case(index, {name: np.array([each]) for name, each in self.cell.items()})
        own = DEFAULTS.get(self.along, np.nan)
        if case is not None and self.along in UPGRADABLE:
            own = read_value(case, self.along)
        if not 0 < own < np.inf:
            raise InputError(
                f"the machine states no {self.along} to start from",
                where="along",
                advice=f"give several values of {self.along}: its range",
            )
        return own

    def _tell_never(
        self,
        values: Floats,
        ours: Curve,
        theirs: Curve,
        both: NDArray[np.intp],
        ahead: NDArray[np.bool_],
    ) -> str:
        """Why one strategy overtakes another nowhere."""
        for curve, whose in ((ours, "it is"), (theirs, "the other is")):
            if np.isnan(curve.time).all():
                return f"never: {whose} nowhere feasible, {_name_most(curve.limit)}"
        if not both.size:
            return "never: nowhere are both feasible"
        if ahead.all():
            return "faster throughout"
        if ahead.any():
            return "faster at first, until it is overtaken"
        return f"never: {self._tell_best(values, ours, theirs, both)}"

    def _tell_best(self, values: Floats, ours: Curve, theirs: Curve, both: NDArray[np.intp]) -> str:
        """Where one strategy comes nearest to another, and whether its communication is why."""
        ratio = ours.time[both] / theirs.time[both]
        n = int(ratio.argmin())
        at = both[n]
        what, more = ("cost", "costs more") if self.aim.goal == "cost" else ("time", "takes longer")
        told = f"{ratio[n]:.3g} times its {what} at best, at {self.along} {self._write(values[at])}"
        if ours.communication[at] > theirs.time[at]:
            return f"{told}, where its communication alone {more}"
        return told

    def _write(self, value: float) -> str:
        parameter = PARAMETERS[self.along]
        return f"{value:,.0f}" if parameter.whole else format_quantity(float(value), parameter.unit)


def is_ahead(ours: Floats, theirs: Floats) -> NDArray[np.bool_]:
    """Where one time is less than another, and not for its rounding alone; not where one is NaN."""
    ahead: NDArray[np.bool_] = ours < theirs * (1 - ROUNDING)
    return ahead


def _list_counts(low: float, high: float) -> Floats:
    """All whole numbers from one to another."""
    if high - low >= MOST_COUNTS:
        raise InputError(
            f"expected at most {MOST_COUNTS:,} counts, got {high - low + 1:,.0f}",
            where="along",
            advice="select fewer",
        )
    return np.arange(low, high + 1)


def _name_most(limit: NDArray[np.int64]) -> str:
    """The names of the flags that forbid most values."""
    kinds, counts = np.unique(limit & FORBIDS, return_counts=True)
    return ", ".join(name_limits(int(kinds[counts.argmax()])))
