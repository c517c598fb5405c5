"""Marks of global batches that are larger than their data set: an epoch is then one iteration."""

from collections.abc import Mapping
from typing import Any

from grids.grid import Grid
from kernels.flags import Limit
from sweep.cube.variables import name_limits
from sweep.questions.degrees import list_degrees

Row = Mapping[str, Any]


def mark_batch(grid: Grid, row: Row, global_batch: float) -> list[str]:
    """The mark of an allowed cell whose global batch is larger than its data set, if so."""
    exceeds = global_batch > _count_samples(grid, row)
    return name_limits(Limit.BATCH_EXCEEDS_DATASET) if exceeds else []


def mark_cell(grid: Grid, row: Row) -> list[str]:
    """The same of a row that names its cell; degrees are found where the mark is possible."""
    passes = row.get("accumulate", grid.spec.parameters.get("accumulate", 1))
    replicas = 1 if grid.spec.scaling == "strong" else row["pe"] * passes
    if row["batch"] * replicas <= _count_samples(grid, row):  # at most, whatever the group is
        return []
    return mark_batch(grid, row, list_degrees(grid, row)["global_batch"])


def _count_samples(grid: Grid, row: Row) -> int:
    """Samples of an epoch."""
    return next(each.samples for each in grid.datasets if each.name == row["dataset"])
