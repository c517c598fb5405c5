"""Best: the strategies ranked for a slice of a cube, and why not the losers."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from grids.grid import Grid
from sweep.answers.degrees import list_degrees, mark_batch
from sweep.answers.frames import tabulate
from sweep.answers.objectives import Aim, Goal, Price, count_hours
from sweep.answers.system_settings import add_software
from sweep.cells.selection import Selection, locate_row
from sweep.cells.source import Source, open_source
from sweep.cells.space import Space, list_given, open_space
from sweep.cube.store import Cube
from sweep.questions.picks import PLACE, pick_strategies

Row = dict[str, Any]

# Rows that have intervals: each takes the kernels some 14 ms.
MOST_RANGES = 1000


def rank_strategies(
    cube: Source,
    selection: Selection | None = None,
    objective: Goal = "epoch_time",
    *,
    price: Price = None,
    max_global_batch: int | None = None,
    across: bool = False,
    why: bool | None = None,
) -> list[Row]:
    """A row for each strategy in each (model, dataset, system) of the slice, the best first.

    `cube` is a Dataset, or a slice of one, or the place of a store. Each strategy with its best
    allowed cell of the slice by the objective: of the axes pe, batch, group, segments and
    accumulate. Other axes, such as a bandwidth, are given: each value has a ranking of its own.
    Columns: labels and axes, replicas, group_size, segment_count, global_batch; epoch_time,
    comp_time, comm_time [s per epoch], memory [bytes a PE], pe_hours of an epoch; epochs and
    train_time [s] too, and pe_hours to the target, where the objective is train_time, or PE-hours
    or cost of what a law of epochs is known of; with `price` the cost. across: systems compete. Of
    the machine oracle epoch_time_p10 and epoch_time_p90 (train_time_p10 ...), and in the first row
    `faster_than_next`: the probability that it takes less time than the second; None where there
    are more than 1,000 rows. `limit` is empty, or marks a global batch beyond the data set. A
    strategy that is nowhere allowed has no rank, `limit` lists why, the most frequent reason first,
    and `rejection` what of its nearest cell would have to change (`sweep.answers.rejection`):
    with `why`, which by default is so of all but stores, whose summaries answer at once.
    """
    aim = Aim(objective, price)
    cube = open_source(cube)  # once for all: each opening reads and checks the root again
    picks = list(pick_strategies(cube, selection, aim, max_global_batch))
    if not picks:
        return []
    space = open_space(cube, selection, max_global_batch)
    rows = [_describe_pick(space.grid, pick, aim) for pick in picks]
    unsure = len(rows) <= MOST_RANGES
    place = (*(PLACE[:2] if across else PLACE), *list_given(space.grid.axes))
    ranked: list[Row] = []
    for some in _split_places(rows, place):
        ranked += _add_chances(space.grid, list(_rank_rows(some, aim.goal)), aim, unsure)
    explains = not isinstance(cube, Cube) if why is None else why
    return add_software(space.systems, [_add_rejection(space, row, explains) for row in ranked])


best = tabulate("best", rank_strategies)


def _describe_pick(grid: Grid, pick: Row, aim: Aim) -> Row:
    """A row of the best cell of a strategy; of one that is nowhere allowed with None throughout."""
    feasible = pick["pe"] is not None
    trains = pick["epochs"] is not None
    cell = {name: pick[name] for name in grid.dims if name in pick}
    degrees = list_degrees(grid, cell, pick["chosen"]) if feasible else _NO_DEGREES
    times = _list_times(pick, aim) if feasible else _list_no_times(aim)
    return {
        **cell,
        **{name: each for name, each in degrees.items() if name not in cell},
        **times,
        "memory": pick["memory"],
        "feasible": feasible,
        "limit": mark_batch(grid, cell, degrees["global_batch"]) if feasible else pick["limit"],
        "trains": trains,
    }


_NO_DEGREES: Row = dict.fromkeys(("replicas", "group_size", "segment_count", "global_batch"))


def _list_times(pick: Row, aim: Aim) -> Row:
    """Times of an epoch [s], to the target where a law is known, and what they cost."""
    epoch, epochs = pick["comp_time"] + pick["comm_time"], pick["epochs"]
    hours = count_hours(pick["pe"], epoch * (epochs or 1.0))
    price = aim.find_price(pick["system"])
    return {
        **({} if epochs is None else {"epochs": epochs, "train_time": epochs * epoch}),
        "epoch_time": epoch,
        "comp_time": pick["comp_time"],
        "comm_time": pick["comm_time"],
        "pe_hours": hours,
        **({} if price is None else {"cost": hours * price}),
    }


def _list_no_times(aim: Aim) -> Row:
    """The same keys where there is no cell."""
    trains = ("epochs", "train_time") if aim.goal == "train_time" else ()
    cost = () if aim.price is None else ("cost",)
    return dict.fromkeys((*trains, "epoch_time", "comp_time", "comm_time", "pe_hours", *cost))


def _split_places(rows: Iterable[Row], place: tuple[str, ...]) -> list[list[Row]]:
    """The rows by the values of some labels, in the order in which these come first."""
    places: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        places.setdefault(tuple(row[label] for label in place), []).append(row)
    return list(places.values())


def _rank_rows(rows: Iterable[Row], goal: Goal) -> Iterator[Row]:
    """The rows of one place, the best first."""
    # Sorting is stable: strategies that nothing allows stay in the cube's order.
    in_order = sorted(rows, key=lambda row: float("inf") if row[goal] is None else row[goal])
    for rank, row in enumerate(in_order, 1):
        yield {"rank": rank if row["feasible"] else None} | row


def _add_chances(grid: Grid, ranked: list[Row], aim: Aim, unsure: bool) -> list[Row]:
    """The rows with what is not known of their times; Table III knows of nothing such.

    unsure: whether there are few enough rows; else all of it is None.
    """
    told = [{name: each for name, each in row.items() if name != "trains"} for row in ranked]
    if grid.spec.oracle != "machine":
        return told
    from sweep.answers.probability import list_chances, list_nothing  # late: JAX comes with it

    if not unsure:
        nothing = list_nothing(any(row["trains"] for row in ranked))
        return [row | nothing for row in told]
    chances = list_chances(grid, ranked, aim)
    return [row | chance for row, chance in zip(told, chances, strict=True)]


def _add_rejection(space: Space, row: Row, explains: bool) -> Row:
    """The row, of a loser with its distance from what is allowed."""
    if row["feasible"] or not explains:
        return row | {"rejection": None}
    from sweep.answers.rejection import explain_rejection  # late: JAX comes with it

    given = {name: np.array([row[name]], float) for name in list_given(space.axes)}
    own = replace(space, axes={**space.axes, **given})
    return row | {"rejection": explain_rejection(own, locate_row(space.grid, row))}
