"""Crossovers: from where on one strategy is faster, or cheaper, than another.

Along PE counts and batches at every whole number, so that none is missed and hybrids count where
they exist. Along a bandwidth, a latency or another continuous parameter the oracle is asked on a
geometric grid, and each change of sign is then closed in on to a relative 1e-9: two crossovers
within one step of the grid, 1.06, both go unseen.

At one PE count PE-hours order the strategies of a system as their times do, and so does their cost:
crossovers of PE-hours are those of the time, crossovers of a cost those between systems.
"""

from collections.abc import Iterator
from functools import partial
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.grid import Index
from grids.models.layers import Floats
from grids.reading.errors import InputError, suggest_name
from sweep.answers.frames import tabulate
from sweep.answers.numbers import pick_range
from sweep.answers.objectives import Aim, Goal, Price
from sweep.answers.reasons import write_commonest
from sweep.answers.system_settings import complete_rows
from sweep.cases.curves import Curves, TimeCurve, is_ahead
from sweep.cells.selection import Selection, write_place
from sweep.cells.source import Source
from sweep.cells.space import Space, open_space, write_cell
from sweep.cube.dimensions import expect_laws

Row = dict[str, Any]
Pair = tuple[Index, Index]

# Combinations of the other axes: every pair of strategies is compared in each.
MOST_CELLS = 256
# Times that are drawn for one answer, of all strategies along all values.
MOST_DRAWN = 2**14


def list_crossovers(
    cube: Source,
    along: str = "pe",
    selection: Selection | None = None,
    *,
    objective: Goal = "epoch_time",
    price: Price = None,
    max_global_batch: int | None = None,
) -> list[Row]:
    """A row for each ordered pair of strategies in each place of the slice, crossovers first.

    Keys: labels and axes, strategy, over; `at`: the values of `along` from which on `strategy`
    takes less time per epoch than `over`, ascending, each behind one where it took more; `first` of
    them; `reason` where there is none. Counts are sought from the least to the most of the slice,
    from 1 where it has one; other parameters up to a thousandth and a thousand times the system's
    own value, or along the slice's axis.

    objective: train_time takes the time to the target in place of an epoch's; pe_hours are those of
    either time (of the training where a law of epochs is known), and have the same crossovers;
    a cost, with a `price`, has those between systems: `over_system`, at the same price those of
    the time. With the machine oracle, where there are at most 16,384 times to draw: `first_p10`,
    `first_p90` over draws of what is not known, None where there is no crossover, and
    `crosses_probability`: the share of the draws that have one.

    InputError: no such parameter or objective, too many counts, no law of epochs, no price.
    """
    _check_parameter(along)
    aim = Aim(objective, price)
    space = open_space(cube, selection, max_global_batch).ask_intervals()
    space.expect_few(MOST_CELLS, along)
    if objective == "train_time":
        expect_laws(space.grid, "objective")
    if not compares_systems(space, aim) and len(space.places["strategy"]) < 2:
        raise InputError(
            "crossovers are of two strategies or more, got one",
            where="strategy",
            advice="add another, such as data,data+filter",
        )
    rows = [row for pairs in _list_pairs(space, aim) for row in _compare(space, pairs, along, aim)]
    rows.sort(key=lambda row: (row["first"] is None, "infeasible" in str(row["reason"])))
    completed = complete_rows(space, rows)
    # Rows of parameters may have their own value of it, which is not taken here.
    return [{key: value for key, value in row.items() if key != along} for row in completed]


crossovers = tabulate("crossovers", list_crossovers)


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


def compares_systems(space: Space, aim: Aim) -> bool:
    """True if systems are compared: by cost, where there are several."""
    return aim.goal == "cost" and len(space.places["system"]) > 1


def tell_same(source: Source, selection: Selection | None, goal: Goal) -> str | None:
    """A note where crossovers of PE-hours, or of a cost on one system, are those of a time."""
    if goal not in ("pe_hours", "cost"):
        return None
    space = open_space(source, selection)
    if goal == "cost" and len(space.places["system"]) > 1:
        return None
    words = "PE-hours order" if goal == "pe_hours" else "costs on one system order"
    time = "train-time" if space.grid.convergences else "epoch-time"
    return f"at one PE count {words} strategies as times do: the same as of --objective {time}"


def _list_pairs(space: Space, aim: Aim) -> list[list[Pair]]:
    """The ordered pairs to compare of each model and data set, and of each system unless systems
    are compared.
    """
    fixed = 2 if compares_systems(space, aim) else 3
    places: dict[tuple[int, ...], list[Index]] = {}
    for index in space.list_indices():
        places.setdefault(index[:fixed], []).append(index)
    return [
        [pair for pair in permutations(indices, 2) if fixed == 3 or pair[0][2] != pair[1][2]]
        for indices in places.values()
    ]


def _compare(space: Space, pairs: list[Pair], along: str, aim: Aim) -> Iterator[Row]:
    """The rows of all pairs, for every value of the other axes."""
    others = {name: values for name, values in space.axes.items() if name != along}
    cells = prod(values.size for values in others.values())
    for values in product(*others.values()):
        cell = dict(zip(others, values, strict=True))
        curves = Curves(space, cell, along, aim)
        axes = write_cell(cell)
        for first, second in pairs:
            over = space.name(second)
            names = space.name(first) | {"over": over["strategy"]}
            if compares_systems(space, aim):
                names["over_system"] = over["system"]
            row = names | axes | {"along": along} | _find_crossovers(curves, first, second)
            yield row | _find_ranges(curves, first, second, cells)


def _find_crossovers(curves: Curves, first: Index, second: Index) -> Row:
    """The values from which on the first is faster than the second, or why it never is."""
    values = curves.span(first)
    ours, theirs = curves.find(first, values), curves.find(second, values)
    both = np.flatnonzero(~np.isnan(ours.time) & ~np.isnan(theirs.time))
    ahead = is_ahead(ours.time[both], theirs.time[both])
    changes = np.flatnonzero(ahead[1:] & ~ahead[:-1])
    at = [curves.close_in(first, second, values[both[n]], values[both[n + 1]]) for n in changes]
    reason = None if at else _explain_never(curves, values, ours, theirs, both)
    return {"first": at[0] if at else None, "at": at, "reason": reason}


def _explain_never(
    curves: Curves, values: Floats, ours: TimeCurve, theirs: TimeCurve, both: NDArray[np.intp]
) -> str:
    """The reason why one strategy overtakes another nowhere."""
    for curve, who in ((ours, "this one"), (theirs, "the other")):
        if np.isnan(curve.time).all():
            return f"never: {who} is infeasible throughout ({write_commonest(curve.limit)})"
    if not both.size:
        return f"never: no {curves.along} at which both are feasible"
    ahead = is_ahead(ours.time[both], theirs.time[both])
    if ahead.any():
        return "faster throughout" if ahead.all() else "faster up to the crossover"
    ratio = ours.time[both] / theirs.time[both]
    at = both[int(ratio.argmin())]
    place = write_place(curves.along, float(values[at]))
    if f"{ratio.min():.3g}" == "1":
        return f"never: at best equal, at {place}"
    cost = curves.aim.goal == "cost"
    times = "times the cost" if cost else "times as long"
    reason = f"never: at best {ratio.min():.3g} {times}, at {place}"
    if ours.communication[at] <= theirs.time[at]:
        return reason
    return f"{reason}; its communication alone {'costs more' if cost else 'takes longer'}"


def _find_ranges(curves: Curves, first: Index, second: Index, cells: int) -> Row:
    """The ranges of the first crossover over draws, where there are few enough to draw."""
    space, values = curves.space, curves.span(first)
    compared = sum(index[:2] == first[:2] for index in space.list_indices())
    drawn = values.size * compared * cells
    if space.grid.spec.oracle == "paper" or drawn > MOST_DRAWN:
        return {}
    whole = PARAMETERS[curves.along].whole
    return find_crossing_ranges(*curves.draw_pair(first, second, values), whole)


def find_crossing_ranges(values: Floats, ours: Floats, theirs: Floats, whole: bool) -> Row:
    """`first_p10` and `first_p90`, None where there is no crossover, and `crosses_probability`.

    values: ascending, those at which both are feasible. ours, theirs: times [value, draw]. Where
    ours is ahead throughout, it is so from the first value on. Roots of a continuous parameter lie
    on a line between two values in logarithms.
    """
    draws = ours.shape[-1]
    first = np.full(draws, np.inf)
    crossed = 0
    with np.errstate(divide="ignore"):  # of a value 0, which a parameter may have
        axis = values if whole else np.log(values)
    for draw in range(draws) if values.size else ():
        apart = np.log(ours[:, draw] / theirs[:, draw])
        ahead = apart < 0
        changes = np.flatnonzero(ahead[1:] & ~ahead[:-1])
        crossed += bool(changes.size)
        if changes.size:
            first[draw] = _find_root(values, axis, apart, int(changes[0]), whole)
        elif ahead.all():
            first[draw] = values[0]
    return {
        **pick_range("first", first, partial(_write_root, whole=whole)),
        "crosses_probability": crossed / draws,
    }


def _find_root(values: Floats, axis: Floats, apart: Floats, at: int, whole: bool) -> float:
    """The value between two at which the logarithm of a ratio falls below 0."""
    if whole or np.isinf(axis[at]):
        return float(values[at + 1])
    part = apart[at] / (apart[at] - apart[at + 1])
    return float(np.exp(axis[at] + part * (axis[at + 1] - axis[at])))


def _write_root(value: float, whole: bool) -> int | float | None:
    if np.isinf(value):
        return None
    return int(value) if whole else value
