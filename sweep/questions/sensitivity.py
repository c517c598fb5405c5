"""Sensitivity: which upgrade pays, by derivatives of the oracle itself.

An elasticity is d log T / d log x, exact by automatic differentiation through both stages: 0.3
means 0.3 % more time for 1 % more of x. Choices (groups, segments, stages, algorithms) stay as they
are: at a kink between two of them the derivative is that of the side that was chosen.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jax import Array

from grids.entries.parameters import PARAMETERS
from grids.grid import Grid, Index
from kernels.arrays import Cells
from kernels.compiled import compiled, fetch
from kernels.configuration.case import Case
from kernels.configuration.places import scale_parameters
from kernels.derivatives.slopes import Factors, pull_back
from kernels.names.flags import FORBIDS
from kernels.namespace import xp
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

# Cells of a strategy that are differentiated one by one.
MOST_CELLS = 256
# An upgrade halves a time, or doubles a rate.
HALF, DOUBLE = 0.5, 2.0
# Elasticities below it are rounding.
NOTHING = 1e-12


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
    place = space.name(index) | write_cell(cell)
    case, division = build_stages(space.grid, index, place)
    if int(number(answer_case(case).limit)) & FORBIDS:
        return
    elasticities = find_elasticities(case, division)
    rows = [
        {
            "parameter": name,
            "value": read_value(case, name),
            "elasticity": elasticity,
            **_try_upgrade(case, division, name, HALF if elasticity > 0 else DOUBLE),
        }
        for name, elasticity in elasticities.items()
        # A parameter of the other oracle cannot be set.
        if abs(elasticity) > NOTHING and PARAMETERS[name].oracle in (None, space.grid.spec.oracle)
    ]
    yield from (place | row for row in sorted(rows, key=lambda row: row["change"] or 0.0))


def _try_upgrade(case: Case, division: Division, name: str, factor: float) -> Row:
    """The effect of halving, or doubling, a parameter; None where that is out of bounds."""
    parameter, value = PARAMETERS[name], factor * read_value(case, name)
    if not parameter.low <= value <= parameter.high:
        return {"upgrade": None, "change": None}
    upgrade = "halved" if factor == HALF else "doubled"
    return {"upgrade": upgrade, "change": find_change(case, division, {name: factor})}


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
    slopes = fetch(_differentiate(case, division))
    finite = {name: float(slopes[name]) for name in UPGRADABLE if np.isfinite(slopes[name])}
    # A percentage of 0, or of infinity, is no change.
    return {
        name: slope for name, slope in finite.items() if 0 < abs(read_value(case, name)) < np.inf
    }


def find_change(case: Case, division: Division, factors: dict[str, float]) -> float:
    """The change of the time by factors of parameters, (T' - T) / T."""
    nothing = dict.fromkeys(UPGRADABLE, 1.0)
    before, after = (
        float(_find_log_time(case, division, by)) for by in (nothing, nothing | factors)
    )
    return float(np.expm1(after - before))


@compiled(numpy=True)
def _find_log_time(case: Case, division: Division, factors: Mapping[str, Cells]) -> Array:
    """The logarithm of the time of an epoch, each parameter times its factor."""
    answer = evaluate_points(Points(scale_parameters(case, factors), division))
    return xp.log(xp.sum(xp.asarray(answer.epoch_time)))


@compiled(few=True)
def _differentiate(case: Case, division: Division) -> dict[str, Array]:
    """The derivatives of that logarithm, by parameter."""

    def find(factors: Factors) -> dict[str, Array]:
        return {"time": _find_log_time(case, division, factors)}

    _, slopes = pull_back(find, UPGRADABLE)
    return dict(slopes["time"])
