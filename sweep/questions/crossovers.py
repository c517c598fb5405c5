"""Crossovers: from where on one strategy is faster than another.

Along PE counts and batches at every whole number, so that none is missed and hybrids count where
they exist. Along a bandwidth, a latency or another continuous parameter the oracle is asked on a
geometric grid, and each change of sign is then closed in on to a relative 1e-9: of two crossovers
within one step of the grid, 1.06, both go unseen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import DEFAULTS, PARAMETERS
from grids.grid import Index
from grids.models.layers import Floats
from grids.reading.errors import InputError, suggest_name
from grids.reading.units import format_quantity
from kernels.flags import FORBIDS
from kernels.oracle import answer_case
from sweep.cube.variables import name_limits
from sweep.questions.selection import Selection
from sweep.questions.space import Space, open_space, write_axis
from sweep.questions.summary_table import Source
from sweep.questions.upgradable import UPGRADABLE, read_value

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

# Whole numbers along which crossovers are sought at once.
MOST_COUNTS = 2**16
# Combinations of the other axes: every pair of strategies is compared in each.
MOST_CELLS = 256
# Of a continuous parameter: how far on either side of the system's own, and in how many steps.
FAR, STEPS = 1000.0, 240
# A bracket is divided into so many parts, so often: ln 1.06 / 240 ** 4 is 2e-11.
ROUNDS = 4


@dataclass(frozen=True)
class Curve:
    """A strategy's time along some values [s], NaN where it is forbidden; and what forbids it."""

    time: Floats
    limit: NDArray[np.int64]
    communication: Floats


def crossovers(
    cube: Source,
    along: str = "pe",
    selection: Selection | None = None,
    *,
    max_global_batch: int | None = None,
) -> "pd.DataFrame":
    """A row for each ordered pair of strategies in each place of the slice.

    Columns: labels and axes, strategy, over; `at`: the values of `along` from which on `strategy`
    takes less time an epoch than `over`, ascending, each behind one where it took more; `first` of
    them; `reason` where there is none. Counts are sought from the least to the most of the slice,
    from 1 where it has one; of other parameters up to a thousandth and a thousand times the
    system's own value, or along the slice's axis. InputError: no such parameter, too many counts.
    """
    import pandas as pd

    rows = list_crossovers(cube, along, selection, max_global_batch=max_global_batch)
    return pd.DataFrame(rows, dtype=object)


def list_crossovers(
    cube: Source,
    along: str = "pe",
    selection: Selection | None = None,
    *,
    max_global_batch: int | None = None,
) -> list[Row]:
    """The rows of `crossovers` as plain data, those with crossovers first."""
    _check_parameter(along)
    space = open_space(cube, selection, max_global_batch)
    space.expect_few(MOST_CELLS, along)
    rows = [row for place in _list_places(space) for row in _compare_place(space, place, along)]
    return sorted(rows, key=lambda row: (row["first"] is None, "nowhere" in str(row["reason"])))


def _check_parameter(along: str) -> None:
    if along not in PARAMETERS:
        raise InputError(
            f"unknown parameter {along!r}", where="along", advice=suggest_name(along, PARAMETERS)
        )
    if PARAMETERS[along].whole and along not in ("pe", "batch"):
        raise InputError(
            f"no crossovers are sought along {along!r}",
            where="along",
            advice="expected pe, batch, or a continuous parameter, such as inter_bandwidth",
        )


Place = tuple[int, int, int]


def _list_places(space: Space) -> list[Place]:
    """Models, data sets and systems whose samples fit."""
    return list(dict.fromkeys(index[:3] for index in space.list_indices()))


def _compare_place(space: Space, place: Place, along: str) -> Iterator[Row]:
    """The rows of all pairs of strategies, for every value of the other axes."""
    indices = [(*place, strategy) for strategy in space.places["strategy"]]
    others = {name: values for name, values in space.axes.items() if name != along}
    for values in product(*others.values()):
        cell = dict(zip(others, values, strict=True))
        curves = Curves(space, cell, along)
        for first, second in permutations(indices, 2):
            names = space.name(first) | {"over": space.name(second)["strategy"]}
            axes = {name: write_axis(name, value) for name, value in cell.items()}
            yield names | axes | {"along": along} | curves.compare(first, second)


class Curves:
    """The times of strategies along one parameter, everything else fixed."""

    def __init__(self, space: Space, cell: Mapping[str, float], along: str) -> None:
        self.space, self.cell, self.along = space, cell, along
        self._known: dict[tuple[Index, bytes], Curve] = {}

    def compare(self, first: Index, second: Index) -> Row:
        """From where on the first is faster than the second, or why it never is."""
        values = self.span(first)
        ours, theirs = self.find(first, values), self.find(second, values)
        both = np.flatnonzero(~np.isnan(ours.time) & ~np.isnan(theirs.time))
        ahead = ours.time[both] < theirs.time[both]
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

    def _evaluate(self, index: Index, values: Floats) -> Curve:
        given = {name: np.array([each]) for name, each in self.cell.items()} | {self.along: values}
        # Numeric axes stand in the order of the table, whether the grid has this one or not.
        case = self.space.grid.case(
            index, {name: given[name] for name in PARAMETERS if name in given}
        )
        assert case is not None  # its samples fit
        answer = answer_case(case)
        comp, comm, limit = (
            np.broadcast_to(np.ravel(each), values.shape)
            for each in (answer.compute, answer.communication, answer.limit)
        )
        forbidden = (limit.astype(np.int64) & FORBIDS) > 0
        return Curve(np.where(forbidden, np.nan, comp + comm), limit.astype(np.int64), comm)

    def _close_in(self, first: Index, second: Index, low: float, high: float) -> int | float:
        """The value in a bracket from which on the first is faster."""
        if PARAMETERS[self.along].whole:
            return int(high)
        for _ in range(ROUNDS):
            values = (
                np.geomspace(low, high, STEPS + 1) if low > 0 else np.linspace(0, high, STEPS + 1)
            )
            ahead = self._evaluate(first, values).time < self._evaluate(second, values).time
            at = max(1, int(np.argmax(ahead)))
            low, high = float(values[at - 1]), float(values[at])
        return high

    def _read_own(self, index: Index) -> float:
        """The system's own value of the parameter."""
        grid = self.space.grid
        if self.along in grid.spec.parameters:
            return float(grid.spec.parameters[self.along])
        case = grid.case(index, {name: np.array([each]) for name, each in self.cell.items()})
        stated = case is not None and self.along in UPGRADABLE
        own = read_value(case, self.along) if stated else DEFAULTS.get(self.along, np.nan)
        if not 0 < own < np.inf:
            raise InputError(
                f"the machine states no {self.along} to start from",
                where="along",
                advice=f"give the range, such as --set {self.along}=FIRST,LAST",
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
        told = f"{ratio[n]:.3g} times its time at best, at {self.along} {self._write(values[at])}"
        if ours.communication[at] > theirs.time[at]:
            return f"{told}, where its communication alone takes longer"
        return told

    def _write(self, value: float) -> str:
        parameter = PARAMETERS[self.along]
        return f"{value:,.0f}" if parameter.whole else format_quantity(float(value), parameter.unit)


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
