"""Chances of ranked rows: between which times each lies, and whether the first beats the second."""

from typing import Any

from grids.grid import Grid
from kernels.outputs import compute_outputs
from kernels.statistics import Objective
from sweep.questions.objectives import Aim
from sweep.questions.plain_numbers import finite, number
from sweep.questions.probability import find_chance
from sweep.questions.row_cases import build_row_case

Row = dict[str, Any]

PERCENTS = (10, 90)


def list_chances(grid: Grid, ranked: list[Row], aim: Aim) -> list[Row]:
    """Of each row the 10th and 90th percentile of its time [s]; of the first `faster_than_next`.

    Of the time to the target where the rows have one.
    """
    unsure = grid.ask_intervals()
    trains = any(row["trains"] for row in ranked)
    objective: Objective = "train_time" if trains else "epoch_time"
    rivals = [row for row in ranked[:2] if row["feasible"]]
    by_time = len(rivals) == 2 and aim.summarised is not None
    first = find_chance(grid, rivals[0], rivals[1], objective) if by_time else None
    return [
        _list_percentiles(unsure, row, objective) | {"faster_than_next": None if n else first}
        for n, row in enumerate(ranked)
    ]


def list_nothing(trains: bool) -> Row:
    """The same keys where nothing is asked."""
    names = _name_percentiles("train_time" if trains else "epoch_time")
    return dict.fromkeys((*names, "faster_than_next"))


def _name_percentiles(objective: Objective) -> tuple[str, ...]:
    return tuple(f"{objective}_p{percent}" for percent in PERCENTS)


def _list_percentiles(grid: Grid, row: Row, objective: Objective) -> Row:
    names = _name_percentiles(objective)
    if not row["feasible"]:
        return dict.fromkeys(names)
    values = compute_outputs(build_row_case(grid, row), names=names)
    return {name: finite(number(values[name])) for name in names}
