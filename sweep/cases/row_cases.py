"""Build the kernels' case for the cell of an answer's row."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grids.entries.strategies import Strategy
from grids.grid import Grid
from kernels.configuration.answers import Answer, AnyCase, LayoutCase
from kernels.configuration.case import Case
from kernels.oracle.answer import answer_case, settle_choices
from kernels.parallelism.layout import list_degrees
from sweep.answers.numbers import number
from sweep.cases.layout_cells import LayoutCell, find_cell
from sweep.cells.reader import CHOSEN
from sweep.cells.selection import locate_row

Row = Mapping[str, Any]


def build_row_case(grid: Grid, row: Row) -> AnyCase:
    """Build the case of a row's labels and axes, with the choices of `best` settled.

    `group_size`, `degrees` and `segment_count` are taken from the row if it has them.
    """
    index = locate_row(grid, row)
    axes = {name: np.array([row[name]], float) for name in grid.axes}
    case = grid.case(index, axes, _settle_known(grid.strategy(index), row))
    assert case is not None  # a row describes a cell of the cube
    settled: AnyCase = settle_choices(case)
    return settled


def find_row_cell(grid: Grid, row: Row) -> LayoutCell:
    """The layout of a row's cell, of a strategy that layouts answer for."""
    case = build_row_case(grid, {name: row[name] for name in grid.dims})
    assert isinstance(case, LayoutCase)
    axes = {name: np.array([row[name]], float) for name in grid.axes}
    return find_cell(grid, case, locate_row(grid, row), axes)


def choose_row(grid: Grid, row: Row) -> dict[str, int]:
    """Group, degrees and segments that `best` chooses in a row's cell."""
    strategy = grid.strategy(locate_row(grid, row))
    case = build_row_case(grid, {name: row[name] for name in grid.dims})
    assert isinstance(case, Case)  # layouts have settled their choices
    return read_choice(case, strategy)


def answer_expected(case: AnyCase) -> Answer:
    """Answer of the oracle without draws of uncertain parameters."""
    return answer_case(replace(case, uncertainty=None))


def read_choice(case: Case, strategy: Strategy) -> dict[str, int]:
    """Group, segments and degrees of a case of one cell, by name."""
    degrees = list_degrees(strategy.parts, case.run)
    numbers = {"group": case.run.group, **degrees, "segments": case.run.segments}
    return {name: int(number(value)) for name, value in numbers.items()}


def _settle_known(strategy: Strategy, row: Row) -> Strategy:
    """Settle the strategy's choices with the values in a row, if it has them all."""
    degrees = row.get("degrees") or {}
    known = {name: row.get(CHOSEN.get(name, name), degrees.get(name)) for name in strategy.choices}
    if None in known.values():
        return strategy
    return strategy.settle({name: int(size) for name, size in known.items() if size is not None})
