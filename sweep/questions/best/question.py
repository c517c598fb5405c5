"""Best: rank the strategies for a slice of a cube, and explain why others are infeasible."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING, cast

import numpy as np

from paradl.grids.convergence.entry import state_epochs
from paradl.grids.grid import Grid
from paradl.grids.notes import has_old_layouts
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.flags import TOO_SLOW, UNSUPPORTED
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.objectives import (
    Aim,
    Goal,
    Price,
    count_hours,
    look_up_price,
    read_epochs,
)
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import (
    HoldsFields,
    LoserFields,
    PickedRow,
    RankingRanges,
    RankingRow,
    Rejection,
    SpentFields,
)
from paradl.sweep.answers.types.words import CellPlaceOrNone, LayoutRates, LayoutTraits
from paradl.sweep.cells.selection import Selection, join_selection, locate_row, read_axis
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.cells.space import CellLabels, Labels, Space, list_given, look_up_capacity
from paradl.sweep.configurations.degrees import (
    NO_RATES,
    find_layout,
    list_degrees,
    list_layout_rows,
    list_no_degrees,
    mark_batch,
    read_layout_words,
    time_iteration,
    write_layouts,
)
from paradl.sweep.configurations.fitting import find_memory_chance, require_fit
from paradl.sweep.questions.best.picks import PLACE, Nothing, Pick, PickedCell, pick_strategies

if TYPE_CHECKING:
    from paradl.sweep.boundaries.deadlines import Deadline
    from paradl.sweep.questions.best.layouts import BestLayouts
    from paradl.sweep.uncertainty.probability import Ranked

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
    epochs: float | None = None,
    **axes: object,
) -> list[RankingRow]:
    """One row for each strategy in each (model, dataset, system) of the slice, the best first.

    Each strategy has its best allowed cell of the slice by the objective, along the axes pe, batch,
    group, segments and accumulate. Each value of another axis, such as a bandwidth, has its own
    ranking. across: systems compete with each other. Strategies of one layout share a rank.

    Times, memory and costs in SI units (`paradl schema best`), and for the machine oracle their
    percentiles and the probability of beating the next rank; None without intervals, beyond 1,000
    rows, and of stores of layouts by earlier formulas. A strategy that is allowed nowhere has no
    rank; `limit` lists the reasons, the most frequent first, and `rejection` the changes that would
    allow its nearest cell. why: find rejections; None: unless a store's summary answers at once.
    InputError: layouts of transformers beside others.

    layouts: of a strategy that leaves layouts open, and of an axis of layouts, list this many of
    the best instead of the best one; of those left open the first row then has `losers`: what
    forbids others, and remedies. None: a row each.

    deadline: rank only what trains within it: seconds, or a text such as "60 d"; the objective is
    then train_time, pe_hours or cost. Rows have the probability of that as `holds`. holds: rank
    only what meets the deadline, if there is one, and what fits in memory, with this probability;
    None: as expected. epochs: to train, in place of those to the target. The cells of a store are
    computed anew with `holds` or `epochs`.

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
    if epochs is not None or aim.goal == "train_time":
        epochs = read_epochs(epochs, reader.grid)
    if holds is not None:
        selection, reader = require_fit(reader, selection, holds)
    if epochs is not None:
        selection = reader.list_values(selection or {})  # a Dataset may be a slice of its grid
        pairs = product(reader.grid.labels["model"], reader.grid.labels["dataset"])
        reader = open_source(replace(reader.grid, convergences=state_epochs(epochs, pairs)))
    space = open_space(reader, selection, max_global_batch)
    space.expect_one_kind()
    if deadline is not None or epochs is not None:
        _expect_trainings(space, aim, "epochs" if deadline is None else "deadline")
    limit = None if deadline is None else _read_deadline(space, deadline, holds)
    found: BestLayouts | None = None
    if layouts is not None and (not isinstance(layouts, int) or layouts < 1):
        raise InputError(f"expected 1 or more, got {layouts!r}", where="layouts")
    if layouts is not None and not list_layout_rows(reader.grid):
        from paradl.sweep.questions.best.layouts import find_best_layouts  # late: imports JAX

        found = find_best_layouts(space, layouts, aim, limit)
        # Their strategies are all asked about; values of other axes stay selected.
        selection = {name: of for name, of in (selection or {}).items() if name != "strategy"}
        space = open_space(found.grid, selection)
        picks = _pick_layouts(found, selection, aim, limit, intervals=intervals)
    else:
        most = layouts or 1
        picks = [*pick_strategies(reader, selection, aim, max_global_batch, limit, most)]
    # Intervals are computed anew, and would not hold what earlier formulas gave.
    is_old = has_old_layouts(space.grid, reader.versions)
    unsure = intervals and len(picks) <= MOST_RANGES and not is_old
    place = (*(PLACE[:2] if across else PLACE), *list_given(space.grid, space.grid.axes))
    # A rejection calls the kernels, and so takes longer than an answer from a summary.
    explains = not reader.keeps_summary if why is None else why
    lists_losers = found is not None and any(found.losers.values())
    described = [_describe_pick(space.grid, pick, aim, limit) for pick in picks]
    ranked: list[RankingRow] = []
    for rivals in _split_places(described, place):
        in_order = _rank_rivals(rivals, aim.goal)
        chances = _list_chances(space.grid, in_order, aim, unsure)
        reasons = found.losers[_locate(in_order[0][1])] if found else []
        for n, ((rank, row, _), chance) in enumerate(zip(in_order, chances, strict=True)):
            losers: LoserFields = {"losers": [] if n else reasons} if lists_losers else {}
            is_forbidden = not row["feasible"] and TOO_SLOW not in row["limit"]
            rejection = _reject(space, row) if explains and is_forbidden else None
            ranked.append({"rank": rank, **row, **chance, **losers, "rejection": rejection})
    return write_layouts(space.grid, complete_rows(space, ranked))


best = tabulate("best", rank_strategies)


def _expect_trainings(space: Space, aim: Aim, where: str) -> None:
    """Raise InputError, naming `where`, unless times of whole trainings are compared."""
    pairs = product(space.grid.labels["model"], space.grid.labels["dataset"])
    trains = any(aim.trains(space.grid, model, dataset) for model, dataset in pairs)
    if aim.goal == "memory" or not trains:  # what needs the least has no time to compare
        raise InputError(
            "a whole training has to be compared",
            where=where,
            advice="give epochs, such as 90, and ask for train_time, pe_hours or cost",
        )


def _read_deadline(space: Space, deadline: float | str, holds: float | str | None) -> "Deadline":
    from paradl.sweep.boundaries.deadlines import Deadline  # late: imports JAX

    return Deadline.read(deadline, holds, space.grid.spec.oracle)


def _pick_layouts(
    found: "BestLayouts",
    selection: Selection,
    aim: Aim,
    deadline: "Deadline | None",
    *,
    intervals: bool,
) -> list[Pick]:
    """List the best layouts, and the best cells of strategies that leave none open."""
    grid = found.grid
    # Two strategies may have found the same.
    given = list_given(grid, grid.axes)
    distinct = {
        (*labels.values(), *(cell.axes.get(name) for name in given)): (labels, cell)
        for of in found.found
        for labels, cell in of.list_picks(aim, grid.draws if intervals else 0)
    }
    others = {*chain(*found.others.values())}
    if not others:
        return [*distinct.values()]
    stated = tuple(strategy for strategy in grid.strategies if strategy.label in others)
    picks = pick_strategies(replace(grid, strategies=stated), selection, aim, deadline=deadline)
    # Those of other places are no candidates.
    kept = [pick for pick in picks if pick[0]["strategy"] in found.others[_locate(pick[0])]]
    return [*distinct.values(), *kept]


def _locate(row: Labels | PickedRow) -> tuple[str, str, str]:
    return row["model"], row["dataset"], row["system"]


# A row before its rank, and the spread of the logarithm of its time, where known.
Described = tuple[PickedRow, float | None]


def _describe_pick(grid: Grid, pick: Pick, aim: Aim, deadline: "Deadline | None") -> Described:
    """Describe a strategy's best cell; values are None if nothing is allowed."""
    labels, found = pick
    holds: HoldsFields = {"holds": None} if deadline else {}
    if isinstance(found, Nothing):
        return {**_describe_nothing(grid, labels, found, aim), **holds}, None
    cell: CellLabels = {**labels, **found.axes}
    layout = found.layout or find_layout(grid, cell)
    degrees = list_degrees(grid, cell, found.chosen, layout)
    index, batch = locate_row(grid, cell), degrees["global_batch"]
    rates, traits = time_iteration(grid, index, cell, batch, found.epoch_time), LayoutRates()
    fits = find_memory_chance(grid, index, cell, found.memory)
    if layout:
        rates["iteration_time"] = layout.times["iteration_time"]
        traits = layout.describe(fits)
    lacks = [UNSUPPORTED] if layout and layout.is_unsupported else []
    if deadline:
        seconds = found.epoch_time * (found.epochs or 1.0)
        chance = deadline.find_chance(grid, {**cell, **degrees}, seconds, found.spread)
        holds = {"holds": chance}
    row: PickedRow = {
        **cell,
        **degrees,
        **cell,  # an axis may have the name of a degree
        **_list_times(labels, found, aim),
        **rates,
        **traits,
        "memory": found.memory,
        "memory_capacity": look_up_capacity(grid, index, cell),
        "fits": fits,
        "feasible": True,
        "limit": [*mark_batch(grid, cell, batch), *lacks],
        **holds,
    }
    return row, found.spread


def _describe_nothing(grid: Grid, labels: Labels, found: Nothing, aim: Aim) -> PickedRow:
    """Describe a strategy of which no cell is allowed."""
    place = cast(CellPlaceOrNone, found.axes)
    capacity = found.axes.get("memory_capacity")
    training: SpentFields = {
        "epoch_time": None,
        "comp_time": None,
        "comm_time": None,
        "pe_hours": None,
    }
    if aim.goal == "train_time":
        training = {"epochs": None, "train_time": None, **training}
    if aim.price is not None:
        training["cost"] = None
    return {
        **labels,
        **place,
        **list_no_degrees(grid, labels),
        **place,
        **training,
        **LayoutTraits(),
        **HoldsFields(),
        "iteration_time": None,
        **NO_RATES,
        "memory": None,
        "memory_capacity": capacity,
        "fits": None,
        "feasible": False,
        "limit": found.reasons,
    }


def _list_times(labels: Labels, found: PickedCell, aim: Aim) -> SpentFields:
    """Times per epoch [s], times to the target if a law is known, and their cost."""
    epoch, epochs = found.epoch_time, found.epochs
    hours = count_hours(found.axes["pe"], epoch * (epochs or 1.0))
    price = look_up_price(aim.price, labels["system"])
    times: SpentFields = {
        "epoch_time": epoch,
        "comp_time": found.comp_time,
        "comm_time": found.comm_time,
        "pe_hours": hours,
    }
    if epochs is not None:
        times = {"epochs": epochs, "train_time": epochs * epoch, **times}
    if price is not None:
        times["cost"] = hours * price
    return times


def _split_places(
    described: Iterable[Described], place: tuple[str, ...]
) -> Iterable[list[Described]]:
    """Group rows by the values of some labels, in their order."""
    places: dict[tuple[object, ...], list[Described]] = {}
    for row, spread in described:
        fields: Mapping[str, object] = row
        places.setdefault(tuple(fields[label] for label in place), []).append((row, spread))
    return places.values()


def _rank_rivals(rivals: Iterable[Described], goal: Goal) -> "list[Ranked]":
    """Rank the rows of one place, the best first."""

    def weigh(rival: Described) -> tuple[bool, bool, float]:
        """What the named software does not run comes last, before what is infeasible."""
        row, _ = rival
        value = row.get(goal)
        is_marked = row["feasible"] and UNSUPPORTED in row["limit"]
        return value is None, is_marked, float("inf") if value is None else value

    ranks: dict[object, int] = {}
    ranked: list[Ranked] = []
    # Sorting is stable, so infeasible strategies stay in the cube's order.
    for place, (row, spread) in enumerate(sorted(rivals, key=weigh), 1):
        # Strategies of transformers may choose the same layout, and then share a rank.
        words = read_layout_words(row)
        layout = place if words is None else (words, row["pe"], row["batch"])
        rank = ranks.setdefault(layout, place) if row["feasible"] else None
        ranked.append((rank, row, spread))
    return ranked


def _list_chances(
    grid: Grid, ranked: "list[Ranked]", aim: Aim, unsure: bool
) -> list[RankingRanges]:
    """List percentiles and a probability of rows of the machine oracle.

    unsure: compute them; else they are None.
    """
    if grid.spec.oracle != "machine":
        return [{} for _ in ranked]
    from paradl.sweep.uncertainty.probability import list_chances, list_nothing  # late: imports JAX

    return list_chances(grid, ranked, aim) if unsure else list_nothing(ranked)


def _reject(space: Space, row: PickedRow) -> Rejection:
    """Explain why nothing is allowed in a row's place: the nearest cell and its changes."""
    from paradl.sweep.boundaries.rejection import explain_rejection  # late: imports JAX

    # One value of each parameter of the machine.
    given = list_given(space.grid, space.axes)
    values = {name: np.array([read_axis(row, name)]) for name in given}
    place = replace(space, axes={**space.axes, **values})
    return explain_rejection(place, locate_row(space.grid, row))
