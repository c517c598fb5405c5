"""Crossovers: from where on one strategy is faster, or cheaper, than another.

Along PE counts and batches at every whole number, so that none is missed and hybrids count where
they exist. Along a bandwidth, a latency or another continuous parameter the oracle is asked on a
geometric grid, and each change of sign is then closed in on to a relative 1e-9: of two crossovers
within one step of the grid, 1.06, both go unseen.

At one PE count PE-hours order the strategies of a system as their times do, and so does what these
cost: of PE-hours the crossovers are those of the time, of a cost those between systems.
"""

from collections.abc import Iterator
from itertools import permutations, product
from math import prod
from typing import TYPE_CHECKING, Any

from grids.entries.parameters import PARAMETERS
from grids.grid import Index
from grids.reading.errors import InputError, suggest_name
from sweep.answers.objectives import Aim, Goal, Price
from sweep.answers.system_settings import add_software
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.cells.space import Space, open_space, write_axis
from sweep.cube.laws import expect_laws
from sweep.questions.curves import Curves

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

# Combinations of the other axes: every pair of strategies is compared in each.
MOST_CELLS = 256


def crossovers(
    cube: Source,
    along: str = "pe",
    selection: Selection | None = None,
    *,
    objective: Goal = "epoch_time",
    price: Price = None,
    max_global_batch: int | None = None,
) -> "pd.DataFrame":
    """A row for each ordered pair of strategies in each place of the slice.

    Columns: labels and axes, strategy, over; `at`: the values of `along` from which on `strategy`
    takes less time an epoch than `over`, ascending, each behind one where it took more; `first` of
    them; `reason` where there is none. Counts are sought from the least to the most of the slice,
    from 1 where it has one; of other parameters up to a thousandth and a thousand times the
    system's own value, or along the slice's axis.

    objective: train_time takes the time to the target in place of an epoch's; pe_hours are those of
    either time (of the training where a law of epochs is known), and have the same crossovers;
    a cost, with a `price`, has those between systems: `over_system`, of the same price those of
    the time. Of the machine oracle, where there are at most 16,384 times to draw: `first_p10`,
    `first_p90` over draws of what is not known, None where there is no crossover, and
    `crosses_probability`: in what part of the draws there is one.

    InputError: no such parameter or objective, too many counts, no law of epochs, no price.
    """
    import pandas as pd

    rows = list_crossovers(
        cube,
        along,
        selection,
        objective=objective,
        price=price,
        max_global_batch=max_global_batch,
    )
    return pd.DataFrame(rows, dtype=object)


def list_crossovers(
    cube: Source,
    along: str = "pe",
    selection: Selection | None = None,
    *,
    objective: Goal = "epoch_time",
    price: Price = None,
    max_global_batch: int | None = None,
) -> list[Row]:
    """The rows of `crossovers` as plain data, those with crossovers first."""
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
    return add_software(space.systems, rows)


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


Pair = tuple[Index, Index]


def compares_systems(space: Space, aim: Aim) -> bool:
    """Whether it is systems that are compared: of a cost, where there are several."""
    return aim.goal == "cost" and len(space.places["system"]) > 1


def tell_same(source: Source, selection: Selection | None, goal: Goal) -> str | None:
    """That crossovers of PE-hours, or of a cost on one system, are those of a time; None: not."""
    if goal not in ("pe_hours", "cost"):
        return None
    space = open_space(source, selection)
    if goal == "cost" and len(space.places["system"]) > 1:
        return None
    words = "PE-hours order" if goal == "pe_hours" else "costs on one system order"
    time = "train-time" if space.grid.convergences else "epoch-time"
    return f"at one PE count {words} strategies as times do: the same as of --objective {time}"


def _list_pairs(space: Space, aim: Aim) -> list[list[Pair]]:
    """The ordered pairs to be compared, of each model and data set, and of each system unless
    systems are compared.
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
    count = prod(values.size for values in others.values())
    for values in product(*others.values()):
        cell = dict(zip(others, values, strict=True))
        curves = Curves(space, cell, along, aim)
        for first, second in pairs:
            over = space.name(second)
            names = space.name(first) | {"over": over["strategy"]}
            if compares_systems(space, aim):
                names["over_system"] = over["system"]
            axes = {name: write_axis(name, value) for name, value in cell.items()}
            row = names | axes | {"along": along} | curves.compare(first, second)
            yield row | curves.find_ranges(first, second, count)
