"""Limits: how far each strategy scales, and what stops it.

The answers are, for every model, data set, system, strategy, batch and so on: the largest feasible
PE count and the limit that forbids the next one, the PE count with the least epoch time, and the
largest PE count with a given parallel efficiency.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.parameters import GIVEN
from paradl.grids.grid import LABELS, Grid
from paradl.grids.notes import has_old_layouts
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.units import parse_quantity
from paradl.kernels.names.statistics import BEST, EFFICIENCY
from paradl.sweep.answers.mapping import extend, tabulate
from paradl.sweep.answers.objectives import Aim, Goal
from paradl.sweep.answers.reasons import write_each
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import LimitsRow
from paradl.sweep.cells.parts import Table
from paradl.sweep.cells.reader import Reader
from paradl.sweep.cells.selection import Selection, join_selection, locate_row
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.configurations.degrees import list_degrees, mark_cell
from paradl.sweep.configurations.rates import NO_RATES, time_iteration

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
    **axes: object,
) -> list[LimitsRow]:
    """One row for each strategy and each value of the other axes.

    The largest PE count and what forbids the next, the fastest with its time [s] and rates, and the
    largest efficient one (`paradl schema limits`); None where no PE count qualifies. The objective
    train_time counts the time to the target. intervals: add 10th and 90th percentiles; None: for
    the machine oracle if there are few rows.

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
    columns = _make_columns(reader, efficiency, selection, objective, max_global_batch)
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    named = (cast(LimitsRow, dict(zip(columns, row, strict=True))) for row in values)
    plain = [extend(row, _list_rates(reader.grid, row, objective)) for row in named]
    rows = complete_rows(open_space(reader, selection), plain)
    if not expects_intervals(len(rows), intervals):
        return rows
    return add_ranges(reader, rows, efficiency, selection, objective, max_global_batch)


limits = tabulate("limits", list_limits)


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
    return {name: rates[name] for name in NO_RATES}


def pick_furthest(rows: Sequence[LimitsRow]) -> list[LimitsRow]:
    """Pick the row of each strategy and place at the batch that scales furthest, in their order."""
    # Each bandwidth that is swept is another place.
    key = itemgetter(*LABELS, *(name for name in GIVEN if rows and name in rows[0]))
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

    objective = Aim(goal).summarised
    assert objective is not None  # `_make_columns` has checked it
    space = open_space(reader, selection, max_global_batch).ask_intervals()
    return [extend(row, list_line_ranges(space, row, efficiency, objective)) for row in rows]


def _make_columns(
    reader: Reader,
    efficiency: float,
    selection: Selection | None,
    goal: Goal,
    max_global_batch: int | None,
) -> Table:
    """Table of `limits`, as arrays of Python objects."""
    if not 0 < efficiency <= 1:
        raise InputError(
            f"expected more than 0 and at most 1, got {efficiency!r}",
            where="efficiency",
            advice="80 % is 0.8",
        )
    objective = Aim(goal).summarised
    if objective is None:
        raise InputError(
            f"limits cannot be ranked by {goal}",
            where="objective",
            advice="epoch_time or train_time",
        )
    names = BEST[objective]
    lines = reader.summarise(selection or {}, efficiency, objective, max_global_batch)
    columns = lines.list_columns()
    fields = ("pe", "time") if objective == "epoch_time" else ("pe", "time", "epochs")
    axes = {axis: columns[axis] for axis in lines.coordinates}
    best = {names[field]: _mask_nothing(columns[names[field]]) for field in fields}
    return {
        **axes,
        "largest_pe": _mask_nothing(columns["largest_pe"]),
        "forbidden_by": write_each(columns["forbidden_by"], END),
        **best,
        "efficient_pe": _mask_nothing(columns[names["efficient_pe"]]),
        **_list_marks(reader.grid, axes | {"pe": best[names["pe"]]}),
    }


def _list_marks(grid: Grid, cells: Table) -> Table:
    """Column of the marks of the best PE counts; none if no row has a mark."""
    rows = zip(*(column.tolist() for column in cells.values()), strict=True)
    named = (dict(zip(cells, row, strict=True)) for row in rows)
    marks = [[] if row["pe"] is None else mark_cell(grid, row) for row in named]
    if not any(marks):
        return {}
    # np.array would make a table of lists of equal length.
    column = np.empty(len(marks), object)
    column[:] = marks
    return {"marks": column}


def _mask_nothing(values: NDArray[Any]) -> NDArray[Any]:
    """Replace 0 PEs and NaN seconds by None."""
    masked = values.astype(object)  # only objects may be None
    masked[~(values > 0)] = None
    return masked
