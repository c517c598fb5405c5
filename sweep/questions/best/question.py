"""Best: rank the strategies for a slice of a cube, and explain why others are infeasible."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np

from paradl.grids.grid import LABELS, Grid
from paradl.grids.notes import has_old_layouts
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.flags import TOO_SLOW, UNSUPPORTED
from paradl.sweep.answers.mapping import Row, tabulate
from paradl.sweep.answers.objectives import Aim, Goal, Price, count_hours, look_up_price
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.cells.selection import Selection, join_selection, locate_row
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.cells.space import Space, list_given, look_up_capacity
from paradl.sweep.configurations.degrees import (
    NO_DEGREES,
    find_layout,
    list_degrees,
    mark_batch,
    read_layout_words,
)
from paradl.sweep.configurations.rates import RATES, time_iteration
from paradl.sweep.questions.best.picks import PLACE, pick_strategies

if TYPE_CHECKING:
    from paradl.sweep.boundaries.deadlines import Deadline
    from paradl.sweep.configurations.layout_cells import LayoutCell
    from paradl.sweep.questions.best.layouts import BestLayouts

# Most rows with intervals: each takes about 14 ms.
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
    intervals: bool = True,
    layouts: int | None = None,
    deadline: float | str | None = None,
    holds: float | str | None = None,
    **axes: object,
) -> list[Row]:
    """One row for each strategy in each (model, dataset, system) of the slice, the best first.

    Each strategy has its best allowed cell of the slice by the objective, along the axes pe, batch,
    group, segments and accumulate. Each value of another axis, such as a bandwidth, has its own
    ranking. across: systems compete with each other.

    Keys: labels and axes, replicas, group_size, segment_count, global_batch; epoch_time, comp_time,
    comm_time [s per epoch], memory and memory_capacity [B per PE], pe_hours per epoch. For
    train_time, and for PE-hours or cost with a known convergence law, also epochs, train_time [s],
    and pe_hours to the target; with `price` the cost. The machine oracle adds epoch_time_p10 and
    epoch_time_p90 (or train_time_p10 ...), and in the first row `faster_than_next`: the probability
    of taking less time than the next rank; None without intervals, beyond 1,000 rows, and of stores
    of layouts by earlier formulas. Strategies of one layout share a rank.

    `limit` is empty, or marks a global batch that exceeds the data set. A strategy that is allowed
    nowhere has no rank; `limit` lists the reasons, the most frequent first, and `rejection` the
    changes that would allow its nearest cell. why: find rejections; None:
    unless a store's summary answers at once. InputError: layouts of transformers beside others.

    layouts: of a strategy that leaves layouts open, list this many of the best instead of the best
    one; the first row then has `losers`: what forbids others, and remedies. None: a row each.

    deadline: rank only what trains within it: seconds, or a text such as "60 d"; the objective is
    then train_time, pe_hours or cost. holds: with this probability; None: the expected time meets
    it. Rows have the probability as `holds`.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> first = paradl.best(ds, {"pe": 64}).iloc[0]
    >>> first["strategy"], round(first["epoch_time"], 1)
    ('data', 80.6)
    """
    selection = join_selection(selection, axes)
    aim = Aim(objective, price)
    reader = open_source(cube)  # only once: opening reads and checks the root of the store
    space = open_space(reader, selection, max_global_batch)
    space.expect_one_kind()
    limit = None if deadline is None else _read_deadline(space, aim, deadline, holds)
    found: BestLayouts | None = None
    if layouts is not None:
        if not isinstance(layouts, int) or layouts < 1:
            raise InputError(f"expected 1 or more, got {layouts!r}", where="layouts")
        from paradl.sweep.questions.best.layouts import find_best_layouts  # late: imports JAX

        found = find_best_layouts(space, layouts, aim, limit)
        # Their strategies are all asked about; values of other axes stay selected.
        selection = {name: of for name, of in (selection or {}).items() if name != "strategy"}
        space = open_space(found.grid, selection)
        picks = _pick_layouts(found, selection, aim, limit, intervals=intervals)
    else:
        stated = pick_strategies(reader, selection, aim, max_global_batch, limit)
        picks = [(pick, None) for pick in stated]
    rows = [_describe_pick(space.grid, pick, aim, layout) for pick, layout in picks]
    if limit:
        rows = [row | {"holds": _find_chance(space.grid, row, limit)} for row in rows]
    # Intervals are computed anew, and would not hold what earlier formulas gave.
    is_old = has_old_layouts(space.grid, reader.versions)
    unsure = intervals and len(rows) <= MOST_RANGES and not is_old
    place = (*(PLACE[:2] if across else PLACE), *list_given(space.grid, space.grid.axes))
    ranked: list[Row] = []
    for rivals in split_places(rows, place):
        answered = _add_chances(space.grid, list(_rank_rows(rivals, aim.goal)), aim, unsure)
        if found and any(found.losers.values()):
            first, *others = answered
            reasons = found.losers[_locate(first)]
            answered = [first | {"losers": reasons}, *(row | {"losers": []} for row in others)]
        ranked += answered
    # A rejection calls the kernels, and so takes longer than an answer from a summary.
    explains = not reader.keeps_summary if why is None else why
    return complete_rows(space, [_add_rejection(space, row, explains) for row in ranked])


best = tabulate("best", rank_strategies)


def _read_deadline(
    space: Space, aim: Aim, deadline: float | str, holds: float | str | None
) -> "Deadline":
    from paradl.sweep.boundaries.deadlines import Deadline  # late: imports JAX

    pairs = product(space.grid.labels["model"], space.grid.labels["dataset"])
    if not any(aim.trains(space.grid, model, dataset) for model, dataset in pairs):
        raise InputError(
            "a deadline is of a whole training",
            where="deadline",
            advice="ask for train_time, or for pe_hours or cost with a number of epochs",
        )
    return Deadline.read(deadline, holds, space.grid.spec.oracle)


def _find_chance(grid: Grid, row: Row, deadline: "Deadline") -> float | None:
    return deadline.find_chance(grid, row) if row["feasible"] else None


def _pick_layouts(
    found: "BestLayouts",
    selection: Selection,
    aim: Aim,
    deadline: "Deadline | None",
    *,
    intervals: bool,
) -> "list[tuple[Row, LayoutCell | None]]":
    """List the best layouts, and the best cells of strategies that leave none open."""
    grid = found.grid
    draws = grid.draws if intervals else 0
    layouts = (pick for of in found.found for pick in of.list_picks(aim, draws))
    # Two strategies may have found the same.
    given = list_given(grid, grid.axes)
    distinct = {
        tuple(pick[name] for name in (*LABELS, *given)): (pick, cell) for pick, cell in layouts
    }
    others = {*chain(*found.others.values())}
    if not others:
        return [*distinct.values()]
    stated = tuple(strategy for strategy in grid.strategies if strategy.label in others)
    picks = pick_strategies(replace(grid, strategies=stated), selection, aim, deadline=deadline)
    return [
        *distinct.values(),
        # Those of other places are no candidates.
        *((pick, None) for pick in picks if pick["strategy"] in found.others[_locate(pick)]),
    ]


def _locate(row: Row) -> tuple[str, str, str]:
    return row["model"], row["dataset"], row["system"]


def _describe_pick(grid: Grid, pick: Row, aim: Aim, layout: "LayoutCell | None") -> Row:
    """Row of a strategy's best cell; its values are None if nothing is allowed.

    layout: of the cell, if already found.
    """
    feasible = pick["pe"] is not None
    trains = pick["epochs"] is not None
    cell = {name: pick[name] for name in grid.dims if name in pick}
    layout = layout or (find_layout(grid, cell) if feasible else None)
    degrees = list_degrees(grid, cell, pick["chosen"], layout) if feasible else NO_DEGREES
    lacks = [UNSUPPORTED] if layout and layout.is_unsupported else []
    return {
        **cell,
        **{name: degree for name, degree in degrees.items() if name not in cell},
        **_list_times(pick, aim),
        **_list_rates(grid, pick, cell, degrees["global_batch"]),
        **({"iteration_time": layout.times["iteration_time"]} if layout else {}),
        **(layout.describe() if layout and "layout" not in cell else {}),
        "memory": pick["memory"],
        "memory_capacity": look_up_capacity(grid, locate_row(grid, pick), cell)
        if feasible
        else cell.get("memory_capacity"),
        "feasible": feasible,
        "limit": [*mark_batch(grid, cell, degrees["global_batch"]), *lacks]
        if feasible
        else pick["limit"],
        "trains": trains,
        "spread": pick.get("spread"),
    }


def _list_rates(grid: Grid, pick: Row, cell: Row, global_batch: float | None) -> Row:
    """Time of an iteration [s], samples per second and MFU; None without a cell."""
    if global_batch is None:
        return dict.fromkeys(("iteration_time", *RATES))
    epoch = pick["comp_time"] + pick["comm_time"]
    return time_iteration(grid, locate_row(grid, cell), cell, global_batch, epoch)


def _list_times(pick: Row, aim: Aim) -> Row:
    """Times per epoch [s], times to the target if a law is known, and their cost; None without a
    cell.
    """
    if pick["pe"] is None:
        trains = ("epochs", "train_time") if aim.goal == "train_time" else ()
        cost = () if aim.price is None else ("cost",)
        return dict.fromkeys((*trains, "epoch_time", "comp_time", "comm_time", "pe_hours", *cost))
    epoch, epochs = pick["comp_time"] + pick["comm_time"], pick["epochs"]
    hours = count_hours(pick["pe"], epoch * (epochs or 1.0))
    price = look_up_price(aim.price, pick["system"])
    return {
        **({} if epochs is None else {"epochs": epochs, "train_time": epochs * epoch}),
        "epoch_time": epoch,
        "comp_time": pick["comp_time"],
        "comm_time": pick["comm_time"],
        "pe_hours": hours,
        **({} if price is None else {"cost": hours * price}),
    }


def split_places(rows: Iterable[Row], place: tuple[str, ...]) -> list[list[Row]]:
    """Group rows by the values of some labels, in their order."""
    places: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        places.setdefault(tuple(row[label] for label in place), []).append(row)
    return list(places.values())


def _rank_rows(rows: Iterable[Row], goal: Goal) -> Iterator[Row]:
    """Yield the rows of one place with their rank, the best first."""

    def weigh(row: Row) -> tuple[bool, bool, float]:
        """What the named software does not run comes last, before what is infeasible."""
        value = row[goal]
        is_marked = row["feasible"] and UNSUPPORTED in row["limit"]
        return value is None, is_marked, float("inf") if value is None else value

    # Sorting is stable, so infeasible strategies stay in the cube's order.
    in_order = sorted(rows, key=weigh)
    ranks: dict[object, int] = {}
    for rank, row in enumerate(in_order, 1):
        # Strategies of transformers may choose the same layout, and then share a rank.
        words = read_layout_words(row)
        layout = (words, row["pe"], row["batch"]) if words is not None else rank
        yield {"rank": ranks.setdefault(layout, rank) if row["feasible"] else None} | row


def _add_chances(grid: Grid, ranked: list[Row], aim: Aim, unsure: bool) -> list[Row]:
    """Add percentiles and a probability to rows of the machine oracle.

    unsure: compute them; else they are None.
    """
    # These are no keys of the answer: only what follows needs them.
    inner = ("trains", "spread")
    plain = [{name: value for name, value in row.items() if name not in inner} for row in ranked]
    if grid.spec.oracle != "machine":
        return plain
    from paradl.sweep.uncertainty.probability import list_chances, list_nothing  # late: imports JAX

    if not unsure:
        nothing = list_nothing(any(row["trains"] for row in ranked))
        return [row | nothing for row in plain]
    chances = list_chances(grid, ranked, aim)
    return [row | chance for row, chance in zip(plain, chances, strict=True)]


def _add_rejection(space: Space, row: Row, explains: bool) -> Row:
    """Add `rejection` to a row: the nearest cell and its changes if nothing is allowed."""
    if row["feasible"] or not explains or TOO_SLOW in row["limit"]:
        return row | {"rejection": None}
    from paradl.sweep.boundaries.rejection import explain_rejection  # late: imports JAX

    # Search the row's own place: one value of each parameter of the machine.
    given = {name: np.array([row[name]], float) for name in list_given(space.grid, space.axes)}
    place = replace(space, axes={**space.axes, **given})
    return row | {"rejection": explain_rejection(place, locate_row(space.grid, row))}
