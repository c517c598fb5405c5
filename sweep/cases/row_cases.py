"""Cases of rows: the one cell of a row of an answer, as the kernels take it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grids.entries.strategies import Strategy
from grids.grid import Grid
from kernels.configuration.case import Case
from kernels.oracle.answer import Answer, answer_case, settle_choices
from kernels.parallelism.layout import list_degrees
from sweep.answers.numbers import number
from sweep.cells.reader import CHOSEN
from sweep.cells.selection import locate_row

Row = Mapping[str, Any]


def build_row_case(grid: Grid, row: Row) -> Case:
    """The case of a row's labels and axes, with the choices of `best` settled.

    The `group_size`, `degrees` and `segment_count` of a row are taken as they are.
    """
    index = locate_row(grid, row)
    axes = {name: np.array([row[name]], float) for name in grid.axes}
    case = grid.case(index, axes, _settle_known(grid.strategies[index[3]], row))
    assert case is not None  # it is one of the cube's
    return settle_choices(case)


def choose_row(grid: Grid, row: Row) -> dict[str, int]:
    """The group, degrees and segments that `best` chose in a row's cell."""
    strategy = grid.strategies[locate_row(grid, row)[3]]
    return read_choice(build_row_case(grid, {name: row[name] for name in grid.dims}), strategy)


def answer_expected(case: Case) -> Answer:
    """The oracle's answer alone, without draws of what is not known."""
    return answer_case(replace(case, uncertainty=None))


def read_choice(case: Case, strategy: Strategy) -> dict[str, int]:
    """The group and the segments of a case of one cell, and the degrees of several parallelisms."""
    degrees = list_degrees(strategy.parts, case.run)
    numbers = {"group": case.run.group, **degrees, "segments": case.run.segments}
    return {name: int(number(value)) for name, value in numbers.items()}


def _settle_known(strategy: Strategy, row: Row) -> Strategy:
    """The strategy with the choices that a row has."""
    degrees = row.get("degrees") or {}
    known = {name: row.get(CHOSEN.get(name, name), degrees.get(name)) for name in strategy.choices}
    if None in known.values():
        return strategy
    return strategy.settle({name: int(size) for name, size in known.items() if size is not None})
