"""Where a row of an answer stands in the design space, and what it calls what `best` chose."""

from collections.abc import Mapping
from typing import Any

from grids.grid import LABELS, Grid, Index
from grids.reading.errors import InputError

Row = Mapping[str, Any]

# What a cell of `best` chose, as a cube calls it: an axis may be called `group`.
CHOSEN = {"group": "group_size", "segments": "segment_count"}


def locate_row(grid: Grid, row: Row) -> Index:
    """Where a row's labels stand in the design space."""
    model, dataset, system, strategy = (_find_position(grid, dim, row[dim]) for dim in LABELS)
    return model, dataset, system, strategy


def _find_position(grid: Grid, dim: str, label: str) -> int:
    if label not in grid.labels[dim]:
        raise InputError(
            f"{label!r} is no {dim} of the spec in the Dataset's attributes",
            advice="ask each cube by itself",
        )
    return grid.labels[dim].index(label)
