"""Precision and software of the systems in an answer, whose times compare only where equal."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grids.entries.systems import System
from sweep.cells.lines import Columns
from sweep.cells.memory_cube import SYSTEM_SETTINGS

Row = dict[str, Any]

# Keys whose value may be a system, and the keys of its precision and software.
PLACES = {
    "system": SYSTEM_SETTINGS,
    "worst_at": ("worst_precision", "worst_software"),
}


def add_software(systems: Sequence[System], rows: list[Row]) -> list[Row]:
    """The rows of an answer; with several systems the precision and software stand behind each.

    So they do behind `worst_at`, where it is a system.
    """
    if len(systems) < 2:
        return rows
    settings = {system.name: (system.precision, system.software) for system in systems}
    return [_add_settings(row, settings) for row in rows]


def add_columns(systems: Sequence[System], labels: Columns) -> Columns:
    """The columns of an answer with the same additions."""
    if len(systems) < 2:
        return labels
    known: dict[str, dict[str, str]] = {
        name: {system.name: getattr(system, name) for system in systems} for name in SYSTEM_SETTINGS
    }
    items: Columns = {}
    for key, values in labels.items():
        items[key] = values
        for name in PLACES.get(key, ()):
            items[name] = np.array([known[name][system] for system in values.tolist()], object)
    return items


def _add_settings(row: Row, settings: Mapping[str, tuple[str, str]]) -> Row:
    items: Row = {}
    for key, value in row.items():
        items[key] = value
        if key in PLACES and value in settings:
            items |= dict(zip(PLACES[key], settings[value], strict=True))
        elif key == "worst_at" and "system" not in row:
            items |= dict.fromkeys(PLACES[key])
    return items
