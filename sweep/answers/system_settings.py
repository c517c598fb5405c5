"""Add to answers the precision and software of systems, and parameters that change together.

Readers need them to compare systems: times compare only if precision and software are equal.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from paradl.grids.entries.systems import System
from paradl.grids.grid import Grid
from paradl.sweep.answers.mapping import A
from paradl.sweep.cells.space import Space, list_row_values

# Keys whose value may be a system, with the keys to add for its precision and software.
PLACES = {
    "system": System.COMPARED,
    "worst_at": ("worst_precision", "worst_software"),
}


def complete_rows(space: Space, rows: Sequence[A]) -> list[A]:
    """Rows with the precision and software after each system, if there are several systems, and
    with the values after each row number of parameters that change together.

    A `worst_at` that names a system gets precision and software, too.
    """
    systems = space.systems
    if space.grid.rows:
        rows = [_add_row_values(space.grid, row) for row in rows]
    if len(systems) < 2:
        return list(rows)
    settings = {system.name: (system.precision, system.software) for system in systems}
    return [_add_settings(row, settings) for row in rows]


def _add_row_values(grid: Grid, row: A) -> A:
    items: dict[str, object] = {}
    for key, value in row.items():
        items[key] = value
        if key in grid.rows:
            items |= list_row_values(grid, {key: value})
    # Values that the question itself varied take precedence.
    return cast(A, {**items, **row})


def _add_settings(row: A, settings: Mapping[str, tuple[str, str]]) -> A:
    items: dict[str, object] = {}
    for key, value in row.items():
        items[key] = value
        if key in PLACES and str(value) in settings:
            items |= dict(zip(PLACES[key], settings[str(value)], strict=True))
        # Rows of one answer have the same keys, also where a strategy loses nowhere.
        elif key == "worst_at" and "system" not in row:
            items |= dict.fromkeys(PLACES[key])
    return cast(A, items)
