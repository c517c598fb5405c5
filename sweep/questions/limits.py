"""Limits: how far each strategy scales, and what stops it.

The answers are, for every model, data set, system, strategy, batch and so on: the largest feasible
PE count and the limit that forbids the next one, the PE count with the least epoch time, and the
largest PE count with a given parallel efficiency.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import cast

from paradl.grids.entries.parameters import GIVEN
from paradl.grids.grid import LABELS, Grid
from paradl.grids.notes import has_old_layouts
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.units import parse_quantity
from paradl.kernels.names.statistics import BEST, EFFICIENCY, Objective
from paradl.sweep.answers.mapping import extend, tabulate
from paradl.sweep.answers.objectives import Aim, Goal
from paradl.sweep.answers.reasons import write_each
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import LimitsRow
from paradl.sweep.cells.reader import Reader
from paradl.sweep.cells.selection import Selection, join_selection, locate_row
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.configurations.degrees import (
    NO_RATES,
    list_degrees,
    list_layout_rows,
    mark_cell,
    time_iteration,
    write_layouts,
)
from paradl.sweep.configurations.fitting import find_memory_chance

END = "end of the axis"
# Most rows with intervals by default: each takes some milliseconds.
FEW = 20


def list_limits(
    cube: Source,
    efficiency: float | str = EFFICIENCY,
    selection: Selection | None = None,
    objective: Goal = "epoch_time",
    max_global_batch: int | None = None,
    *,
    intervals: bool | None = None,
    every_layout: bool = False,
    **axes: object,
) -> list[LimitsRow]:
    """One row for each strategy and each value of the other axes.

    The largest PE count and what forbids the next, the fastest with its time [s] and rates, and the
    largest efficient one (`paradl schema limits`); None where no PE count qualifies. The objective
    train_time counts the time to the target. intervals: add 10th and 90th percentiles; None: for
    the machine oracle if there are few rows. every_layout: of an axis of layouts list all, not just
    the one that scales furthest.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> rows = paradl.limits(ds).set_index("strategy")
    >>> rows.loc["pipeline:segments=best", ["largest_pe", "forbidden_by"]].to_list()
    [8, 'too_many_pes']
    """
    selection = join_selection(selection, axes)
    efficiency = parse_quantity(efficiency, "1", "efficiency", "80%")
    reader = open_source(cube)  # only once: opening reads and checks the root of the store
    scope = (selection, objective, max_global_batch)
    rows = find_lines(reader, efficiency, *scope, every_layout=every_layout)
    if expects_intervals(len(rows), intervals):
        rows = add_ranges(reader, rows, efficiency, *scope)
    return write_layouts(reader.grid, rows, BEST[_summarise(objective)]["pe"])


limits = tabulate("limits", list_limits)


def find_lines(
    cube: Source,
    efficiency: float,
    selection: Selection | None,
    goal: Goal,
    max_global_batch: int | None,
    *,
    every_layout: bool = False,
) -> list[LimitsRow]:
    """The same rows without intervals, and with row numbers of layouts."""
    reader = open_source(cube)
    lines = _list_lines(reader, efficiency, selection, goal, max_global_batch)
    layouts = () if every_layout else list_layout_rows(reader.grid)
    if layouts:
        others = [name for name in reader.grid.axes if name not in ("pe", *layouts)]
        lines = pick_furthest(lines, (*LABELS, *others))
    plain = [extend(row, _list_rates(reader.grid, row, goal)) for row in lines]
    return complete_rows(open_space(reader, selection), plain)


def _list_rates(grid: Grid, row: LimitsRow, goal: Goal) -> Mapping[str, object]:
    """Samples per second and MFU on the fastest PE count, or on that which is first at the target;
    None where there is none.
    """
    pe, time, epochs = (
        (row["fastest_pe"], row["fastest_time"], 1.0)
        if goal == "epoch_time"
        else (row["soonest_pe"], row["soonest_time"], row["soonest_epochs"])
    )
    if not pe or not time or not epochs:
        return NO_RATES
    index, cell = locate_row(grid, row), {**row, "pe": pe}
    # Of whole and partial iterations together any batch gives the same rate; to find that of a
    # cell may take the kernels.
    is_exact = grid.spec.iterations == "exact"
    batch = (
        grid.datasets[index[1]].samples if is_exact else list_degrees(grid, cell)["global_batch"]
    )
    rates: Mapping[str, object] = time_iteration(grid, index, cell, batch, time / epochs)
    return {name: rate for name, rate in rates.items() if name != "iteration_time"}


def pick_furthest(rows: Sequence[LimitsRow], names: Sequence[str] | None = None) -> list[LimitsRow]:
    """Pick the row that scales furthest of those with the same labels, in their order.

    names: other fields by which to compare; None: those of a place, of which each bandwidth that is
    swept is another.
    """
    place = (*LABELS, *(name for name in GIVEN if rows and name in rows[0]))
    key = itemgetter(*(place if names is None else names))
    best: dict[object, LimitsRow] = {}
    for row in rows:
        other = best.setdefault(key(row), row)
        if weigh_reach(row) > weigh_reach(other):
            best[key(row)] = row
    return [*best.values()]


def weigh_reach(row: LimitsRow) -> tuple[float, float]:
    """Return what makes a row of `limits` better: of rows that scale as far, the faster one."""
    time = row.get("fastest_time", row.get("soonest_time"))
    return row["largest_pe"] or 0, -(time or 0)


def expects_intervals(rows: int, intervals: bool | None) -> bool:
    """True if rows get intervals: as requested, or by default if there are few."""
    return 0 < rows <= FEW if intervals is None else intervals


def add_ranges(
    cube: Source,
    rows: list[LimitsRow],
    efficiency: float,
    selection: Selection | None,
    goal: Goal,
    max_global_batch: int | None,
) -> list[LimitsRow]:
    """Add percentiles of time and PE counts to rows of `limits`.

    None for Table III, nor beside times of layouts by earlier formulas, which they would not hold.
    """
    reader = open_source(cube)
    if reader.grid.spec.oracle != "machine" or has_old_layouts(reader.grid, reader.versions):
        return rows
    from paradl.sweep.uncertainty.intervals import list_line_ranges  # late: imports JAX

    objective = _summarise(goal)
    space = open_space(reader, selection, max_global_batch).ask_intervals()
    return [extend(row, list_line_ranges(space, row, efficiency, objective)) for row in rows]


def _list_lines(
    reader: Reader,
    efficiency: float,
    selection: Selection | None,
    goal: Goal,
    max_global_batch: int | None,
) -> list[LimitsRow]:
    """Rows of `limits` without rates; with the marks of the best PE counts if any row has one."""
    if not 0 < efficiency <= 1:
        raise InputError(
            f"expected more than 0 and at most 1, got {efficiency!r}",
            where="efficiency",
            advice="80 % is 0.8",
        )
    objective = _summarise(goal)
    names = BEST[objective]
    lines = reader.summarise(selection or {}, efficiency, objective, max_global_batch)
    columns = lines.list_columns()
    fields = ("pe", "time") if objective == "epoch_time" else ("pe", "time", "epochs")
    best = {names[field]: columns[names[field]] for field in fields}
    table = {
        **{axis: columns[axis] for axis in lines.coordinates},
        "largest_pe": columns["largest_pe"],
        "forbidden_by": write_each(columns["forbidden_by"], END),
        **best,
        "efficient_pe": columns[names["efficient_pe"]],
    }
    # 0 PEs and NaN seconds stand for nothing.
    counted = {"largest_pe", *best, "efficient_pe"}
    memory = columns[names["memory"]].tolist()
    rows = [
        {
            name: None if name in counted and not value > 0 else value
            for name, value in zip(table, values, strict=True)
        }
        for values in zip(*(column.tolist() for column in table.values()), strict=True)
    ]
    fastest = [row[names["pe"]] for row in rows]
    marks = [
        mark_cell(reader.grid, {**row, "pe": pe}) if pe else []
        for row, pe in zip(rows, fastest, strict=True)
    ]
    shown = [{"marks": of} if any(marks) else {} for of in marks]
    fits = [
        find_memory_chance(reader.grid, locate_row(reader.grid, row), {**row, "pe": pe}, size)
        if pe
        else None
        for row, pe, size in zip(rows, fastest, memory, strict=True)
    ]
    parts = zip(rows, fits, shown, strict=True)
    return [cast(LimitsRow, {**row, "fits": chance, **of}) for row, chance, of in parts]


def _summarise(goal: Goal) -> Objective:
    """Return the objective of which there are lines. InputError: there are none."""
    objective = Aim(goal).summarised
    if objective is None:
        raise InputError(
            f"limits cannot be ranked by {goal}",
            where="objective",
            advice="epoch_time or train_time",
        )
    return objective
