"""Sensitivity: which upgrade pays, by derivatives of the oracle itself.

An elasticity is d log T / d log x: 0.3 means 0.3 % more time for 1 % more of x. Groups, segments
and stages stay fixed. At a kink, where for example another algorithm becomes the fastest, it is the
slope towards more of x.

It is found by differences, with all parameters varied in one call in numpy: 10 ms per cell, while a
compiled derivative takes 2 s for each strategy. Times have 16 digits, which leaves nine for slopes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import Grid, Index
from paradl.kernels.arrays import Cells
from paradl.kernels.compiled import compiled, fetch
from paradl.kernels.configuration.case import Case, Points
from paradl.kernels.configuration.places import scale_parameters
from paradl.kernels.derivatives.points import evaluate_points
from paradl.kernels.derivatives.slopes import STEPS, find_elasticity
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.oracle.answer import answer_case
from paradl.kernels.work.division import Division
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.numbers import number
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import SensitivityFields, SensitivityRow, Upgrade
from paradl.sweep.answers.types.words import CellDegrees, LayoutField
from paradl.sweep.cells.selection import Selection, join_selection, read_axis
from paradl.sweep.cells.source import Source, open_space
from paradl.sweep.cells.space import CellLabels, Space, write_cell
from paradl.sweep.configurations.degrees import list_degrees, list_layout_rows, write_layouts
from paradl.sweep.configurations.fitting import find_memory_chance
from paradl.sweep.configurations.row_cases import (
    UPGRADABLE,
    build_row_case,
    keep_fastest_layouts,
    read_value,
)

Step = tuple[str, float]  # a parameter and its factor

# Most cells of a strategy, which are differentiated one by one.
MOST_CELLS = 256
# An upgrade halves a time, or doubles a rate.
HALF, DOUBLE = 0.5, 2.0
UPGRADES: dict[float, Upgrade] = {HALF: "halved", DOUBLE: "doubled"}
# Smaller elasticities are rounding errors.
NOTHING = 1e-9


def list_sensitivities(
    cube: Source,
    selection: Selection | None = None,
    max_global_batch: int | None = None,
    **axes: object,
) -> list[SensitivityRow]:
    """One row for each allowed cell of the slice and each parameter on which its time depends.

    `value` in SI units (the first of several levels), `elasticity` d log T / d log x of the epoch
    time T, and the relative `change` of T by an `upgrade`: the value is halved if less is better,
    else doubled. Both are None if the new value would be out of bounds, as twice an efficiency of
    0.9. The largest gain comes first in each cell. Of an axis of layouts those that are the fastest
    somewhere are asked about. InputError: more than 256 cells per strategy.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> rows = paradl.sensitivity(ds, {"pe": 64, "strategy": "data"}).set_index("parameter")
    >>> row = rows.loc["inter_bandwidth"]
    >>> row["upgrade"], round(row["change"], 3)
    ('doubled', -0.345)
    """
    selection = join_selection(selection, axes)
    space = open_space(cube, selection, max_global_batch)
    space.expect_few(MOST_CELLS, *list_layout_rows(space.grid))
    rows = [row for index in space.list_indices() for row in _list_strategy(space, index)]
    return write_layouts(space.grid, complete_rows(space, rows))


sensitivity = tabulate("sensitivity", list_sensitivities)


def _list_strategy(space: Space, index: Index) -> Iterator[SensitivityRow]:
    """Yield the rows of a strategy; of layouts in rows those of the fastest."""
    fastest = replace(space, axes=keep_fastest_layouts(space, index, space.axes))
    fastest.expect_few(MOST_CELLS)
    for cell in fastest.list_cells():
        yield from _list_rows(space, index, cell)


def _list_rows(space: Space, index: Index, cell: dict[str, float]) -> Iterator[SensitivityRow]:
    """Yield the rows of one cell; none if it is forbidden."""
    place: CellLabels = {**space.name(index), **write_cell(cell)}
    chosen = list_degrees(space.grid, place)
    case, division = build_stages(space.grid, index, place, chosen)
    answer = answer_case(case)
    if int(number(answer.limit)) & FORBIDS:
        return
    # A relative step does not change a value of 0 or infinity; some the oracle does not take.
    values = {
        name: value
        for name in UPGRADABLE
        if 0 < abs(value := read_value(case, name)) < np.inf
        if PARAMETERS[name].oracle in (None, space.grid.spec.oracle)
    }
    rows = _make_rows(values, partial(_find_ratios, case, division))
    words: LayoutField = {"layout": chosen["layout"]} if "layout" in chosen else {}
    fits = find_memory_chance(space.grid, index, cell, number(answer.memory))
    for row in rows:
        yield {**place, **words, **row, "fits": fits}


def _make_rows(
    values: Mapping[str, float], find_ratios: Callable[[Sequence[Step]], Floats]
) -> list[SensitivityFields]:
    """A row for each parameter that the time depends on, the largest gain first.

    find_ratios: the time after each step over that before [step].
    """
    steps = [(name, step) for step in STEPS for name in values]
    slopes = find_elasticity(*find_ratios(steps).reshape(2, -1))
    elasticities = {
        name: float(slope)
        for name, slope in zip(values, slopes, strict=True)
        if np.isfinite(slope) and abs(slope) > NOTHING
    }
    upgrades = _list_upgrades(values, elasticities)
    changed = find_ratios([*upgrades.items()]) - 1
    changes = dict(zip(upgrades, changed.tolist(), strict=True))
    rows: list[SensitivityFields] = [
        {
            "parameter": name,
            "value": values[name],
            "elasticity": elasticity,
            "upgrade": UPGRADES[upgrades[name]] if name in upgrades else None,
            "change": changes.get(name),
        }
        for name, elasticity in elasticities.items()
    ]
    # Changes are negative: the largest gain comes first, and rows without an upgrade last.
    return sorted(rows, key=lambda row: row["change"] or 0.0)


def _list_upgrades(
    values: Mapping[str, float], elasticities: Mapping[str, float]
) -> dict[str, float]:
    """Factor of each parameter that saves time, if the new value is within bounds."""
    factors = {name: HALF if slope > 0 else DOUBLE for name, slope in elasticities.items()}
    return {
        name: factor
        for name, factor in factors.items()
        if PARAMETERS[name].low <= factor * values[name] <= PARAMETERS[name].high
    }


def build_stages(
    grid: Grid, index: Index, row: CellLabels, chosen: CellDegrees
) -> tuple[Case, Division | None]:
    """Case and division of a row's cell, for both stages, with the chosen degrees.

    None in place of a division of blocks, which are not summed ahead.
    """
    case = build_row_case(grid, {**row, **chosen})
    if grid.find_blocks(index):
        return case, None
    sizes = {"group": chosen["group_size"], "segments": chosen["segment_count"] or 1}
    strategy = grid.strategy(index).settle(sizes | chosen.get("degrees", {}))
    groups = grid.groups(
        index, {name: np.array([read_axis(row, name)]) for name in grid.axes}, strategy
    )
    assert groups is not None  # its samples fit
    return case, groups.divide(groups.place()[0])


def _find_ratios(case: Case, division: Division | None, steps: Sequence[Step]) -> Floats:
    """Ratio of the epoch time after each step to that before [step]."""
    # The first point has no step: it is the time before.
    names, by = ("", *(name for name, _ in steps)), (1.0, *(factor for _, factor in steps))
    factors = {name: np.where(np.array(names) == name, by, 1.0) for name, _ in steps}
    # Without uncertainty: spreads are most of the work of an answer, and are not needed.
    times = fetch(_find_times(replace(case, uncertainty=None), division, factors))
    before, *after = np.broadcast_to(np.ravel(times), len(by))
    ratios: Floats = np.array(after) / before
    return ratios


@compiled(numpy=True)
def _find_times(case: Case, division: Division | None, factors: Mapping[str, Cells]) -> Cells:
    """Epoch time at one cell [s], with the factors along the last dimension."""
    return evaluate_points(Points(scale_parameters(case, factors), division)).epoch_time
