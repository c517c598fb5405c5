"""Additions to an answer's rows: their systems' settings, the values of rows of parameters.

Times of systems compare only where precision and software are equal.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from grids.grid import Grid
from sweep.cells.lines import Columns
from sweep.cells.memory_cube import SYSTEM_SETTINGS
from sweep.cells.space import Space, list_row_values
from sweep.cube.coordinates import list_columns

Row = dict[str, Any]

# Keys whose value may be a system, and the keys of its precision and software.
PLACES = {
    "system": SYSTEM_SETTINGS,
    "worst_at": ("worst_precision", "worst_software"),
}


def complete_rows(space: Space, rows: list[Row]) -> list[Row]:
    """The rows of an answer; with several systems the precision and software stand behind each.

    So they do behind `worst_at`, where it is a system. Behind the number of a row of parameters
    that change together stand their values.
    """
    systems = space.systems
    if space.grid.rows:
        rows = [_add_row_values(space.grid, row) for row in rows]
    if len(systems) < 2:
        return rows
    settings = {system.name: (system.precision, system.software) for system in systems}
    return [_add_settings(row, settings) for row in rows]


def complete_columns(space: Space, labels: Columns) -> Columns:
    """The columns of an answer with the same additions."""
    named = {"system": SYSTEM_SETTINGS} if len(space.systems) > 1 else {}
    known: dict[str, dict[str, str]] = {
        name: {system.name: getattr(system, name) for system in space.systems}
        for name in SYSTEM_SETTINGS
    }
    items: Columns = {}
    for key, values in labels.items():
        items[key] = values
        for name in named.get(key, ()):
            items[name] = np.array([known[name][system] for system in values.tolist()], object)
        for name, (dim, column) in list_columns(space.grid).items():
            if dim == key:
                items[name] = column[values.astype(int)]
    return items


def _add_row_values(grid: Grid, row: Row) -> Row:
    items: Row = {}
    for key, value in row.items():
        items[key] = value
        if key in grid.rows:
            items |= list_row_values(grid, {key: value})
    return items | row  # what a question states itself, as what it varied, stays


def _add_settings(row: Row, settings: Mapping[str, tuple[str, str]]) -> Row:
    items: Row = {}
    for key, value in row.items():
        items[key] = value
        if key in PLACES and value in settings:
            items |= dict(zip(PLACES[key], settings[value], strict=True))
        elif key == "worst_at" and "system" not in row:
            items |= dict.fromkeys(PLACES[key])
    return items
