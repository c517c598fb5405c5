"""Sensitivity: which upgrade pays, by derivatives of the oracle itself.

An elasticity is d log T / d log x, by differences through both stages: 0.3 means 0.3 % more time
for 1 % more of x. Groups, segments and stages stay as they are. At a kink, as where another
algorithm becomes the fastest, it is the slope towards more of x.

All parameters are varied in one call, in numpy: 10 ms a cell, where a program of derivatives takes
2 s to compile for each strategy. Times have 16 digits, so that slopes have nine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grids.entries.parameters import PARAMETERS
from grids.grid import Grid, Index
from grids.models.layers import Floats
from kernels.arrays import Cells
from kernels.compiled import compiled, fetch
from kernels.configuration.case import Case
from kernels.configuration.places import scale_parameters
from kernels.names.flags import FORBIDS
from kernels.oracle.answer import answer_case
from kernels.oracle.points import Points, evaluate_points
from kernels.work.division import Division
from sweep.answers.frames import tabulate
from sweep.answers.numbers import number
from sweep.answers.system_settings import complete_rows
from sweep.cases.case_numbers import UPGRADABLE, read_value
from sweep.cases.degrees import list_degrees
from sweep.cases.row_cases import build_row_case
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.cells.space import Space, open_space, write_cell

Row = dict[str, Any]
Step = tuple[str, float]  # a parameter and its factor

# Cells of a strategy that are differentiated one by one.
MOST_CELLS = 256
# An upgrade halves a time, or doubles a rate.
HALF, DOUBLE = 0.5, 2.0
UPGRADES = {HALF: "halved", DOUBLE: "doubled"}
# The step of differences: what a slope is off is 3e-11 where times bend, and as much by rounding.
STEP = 1.00001
# Elasticities below it are rounding.
NOTHING = 1e-9


def list_sensitivities(
    cube: Source, selection: Selection | None = None, max_global_batch: int | None = None
) -> list[Row]:
    """A row for each allowed cell of the slice and each parameter that its time depends on.

    Keys: labels and axes, parameter, `value` in SI units (the first of several levels),
    `elasticity` d log T / d log x of the time T of an epoch, and the effect of an upgrade:
    `upgrade`, halved where less is better, else doubled, and `change` of the time, (T' - T) / T;
    None where the value would be out of bounds, as of an efficiency of 0.9. The largest gain comes
    first in each cell. InputError: more than 256 cells per strategy.
    """
    space = open_space(cube, selection, max_global_batch)
    space.expect_few(MOST_CELLS)
    rows = [
        row
        for index in space.list_indices()
        for cell in space.list_cells()
        for row in _list_rows(space, index, cell)
    ]
    return complete_rows(space, rows)


sensitivity = tabulate("sensitivity", list_sensitivities)


def _list_rows(space: Space, index: Index, cell: dict[str, float]) -> Iterator[Row]:
    """The rows of one cell, none of a forbidden one."""
    place: Row = space.name(index) | write_cell(cell)
    case, division = build_stages(space.grid, index, place)
    if int(number(answer_case(case).limit)) & FORBIDS:
        return
    elasticities = {
        name: elasticity
        for name, elasticity in find_elasticities(case, division).items()
        # A parameter of the other oracle cannot be set.
        if abs(elasticity) > NOTHING and PARAMETERS[name].oracle in (None, space.grid.spec.oracle)
    }
    upgrades = _list_upgrades(case, elasticities)
    changes = find_changes(case, division, upgrades)
    rows = [
        {
            "parameter": name,
            "value": read_value(case, name),
            "elasticity": elasticity,
            "upgrade": UPGRADES[upgrades[name]] if name in upgrades else None,
            "change": changes.get(name),
        }
        for name, elasticity in elasticities.items()
    ]
    yield from (place | row for row in sorted(rows, key=lambda row: row["change"] or 0.0))


def _list_upgrades(case: Case, elasticities: Mapping[str, float]) -> dict[str, float]:
    """The factor of each parameter that saves time, where its value is then within bounds."""
    factors = {name: HALF if slope > 0 else DOUBLE for name, slope in elasticities.items()}
    return {
        name: factor
        for name, factor in factors.items()
        if PARAMETERS[name].low <= factor * read_value(case, name) <= PARAMETERS[name].high
    }


def build_stages(grid: Grid, index: Index, row: Row) -> tuple[Case, Division]:
    """The one cell of a row as both stages take it, with the choices of `best` settled."""
    chosen = list_degrees(grid, row)
    case = build_row_case(grid, row | chosen)
    sizes = {"group": chosen["group_size"], "segments": chosen["segment_count"] or 1}
    strategy = grid.strategies[index[3]].settle(sizes | chosen.get("degrees", {}))
    groups = grid.groups(
        index, {name: np.array([row[name]], float) for name in grid.axes}, strategy
    )
    assert groups is not None  # its samples fit
    return case, groups.divide(groups.place()[0])


def find_elasticities(case: Case, division: Division) -> dict[str, float]:
    """d log T / d log x of every continuous parameter, at one cell."""
    # A percentage of 0, or of infinity, is no change.
    names = [name for name in UPGRADABLE if 0 < abs(read_value(case, name)) < np.inf]
    # To one side alone: to the other, counts of tiles jump. With the second step, times that bend
    # are no error.
    steps = [(name, step) for step in (STEP, STEP**2) for name in names]
    near, far = np.log(_find_ratios(case, division, steps)).reshape(2, -1)
    slopes = (4 * near - far) / (2 * np.log(STEP))
    return {
        name: float(slope) for name, slope in zip(names, slopes, strict=True) if np.isfinite(slope)
    }


def find_changes(case: Case, division: Division, factors: Mapping[str, float]) -> dict[str, float]:
    """The change of the time by the factor of each parameter alone, (T' - T) / T."""
    ratios = _find_ratios(case, division, list(factors.items()))
    return {name: float(ratio - 1) for name, ratio in zip(factors, ratios, strict=True)}


def _find_ratios(case: Case, division: Division, steps: Sequence[Step]) -> Floats:
    """The time of an epoch after each step over that before [step]."""
    names, by = ("", *(name for name, _ in steps)), (1.0, *(factor for _, factor in steps))
    factors = {name: np.where(np.array(names) == name, by, 1.0) for name, _ in steps}
    # Spreads are most of an answer, and no time follows from them.
    times = fetch(_find_times(replace(case, uncertainty=None), division, factors))
    before, *after = np.broadcast_to(np.ravel(times), len(by))
    ratios: Floats = np.array(after) / before
    return ratios


@compiled(numpy=True)
def _find_times(case: Case, division: Division, factors: Mapping[str, Cells]) -> Cells:
    """The time of an epoch at one cell [s], the last dimension that of the factors."""
    return evaluate_points(Points(scale_parameters(case, factors), division)).epoch_time
