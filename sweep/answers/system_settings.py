"""Precision and software of systems that an answer compares: times of others are not alike."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grids.entries.systems import System
from sweep.cells.lines import Columns
from sweep.cells.memory_cube import SYSTEM_SETTINGS

Row = dict[str, Any]

# Keys whose value may be a system, and what its precision and software are called there.
PLACES = {
    "system": SYSTEM_SETTINGS,
    "worst_at": ("worst_precision", "worst_software"),
}


def add_software(systems: Sequence[System], rows: list[Row]) -> list[Row]:
    """The rows of an answer, of several systems with the precision and software of each.

    Behind the system's name; `worst_at`, where it is a system, has its own behind it.
    """
    if len(systems) < 2:
        return rows
    settings = {each.name: (each.precision, each.software) for each in systems}
    return [_add_settings(row, settings) for row in rows]


def add_columns(systems: Sequence[System], labels: Columns) -> Columns:
    """The same of columns."""
    if len(systems) < 2:
        return labels
    known: dict[str, dict[str, str]] = {
        name: {each.name: getattr(each, name) for each in systems} for name in SYSTEM_SETTINGS
    }
    items: Columns = {}
    for key, values in labels.items():
        items[key] = values
        for name in PLACES.get(key, ()):
            items[name] = np.array([known[name][each] for each in values.tolist()], object)
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
