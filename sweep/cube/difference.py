"""Where two design spaces differ, in words, and what one adds to the other."""

from collections.abc import Iterator
from typing import Any

from grids.grid import LABELS, Grid

# Differences that a message names, and values of an axis beyond which it shows the ends alone: a
# message stays under 1 kB.
SHOWN = 3
LONG = 8

Plain = dict[str, Any]
Axes = dict[str, list[Any]]


def describe_difference(stored: Grid, wanted: Grid) -> str:
    """The first differences, as `key: stored, wanted`; empty where both have the same cells.

    What counts is what they mean: it is no difference how an axis is written, whether a default is
    written at all, and what the sweep is called.
    """
    given = bool(wanted.spec.placements)
    return _join_differences(_spell_out(stored, given), _spell_out(wanted, given))


def list_differences(stored: Grid, wanted: Grid) -> list[tuple[str, str, str]]:
    """Each difference but of axes: its key, and both values in words."""
    first, second = _spell_out(stored, True), _spell_out(wanted, True)
    return list(_walk_differences("", first | {"axes": {}}, second | {"axes": {}}))


def list_added_values(stored: Grid, wanted: Grid) -> Axes:
    """The values of each axis that only `wanted` has."""
    # Sets, as an axis may have ten million values: `in` walks a list.
    present = {dim: set(values) for dim, values in _list_axes(stored).items()}
    new = {
        dim: [value for value in values if value not in present.get(dim, ())]
        for dim, values in _list_axes(wanted).items()
    }
    return {dim: values for dim, values in new.items() if values}


def describe_other_changes(stored: Grid, wanted: Grid) -> str:
    """The first differences, leaving aside values that `wanted` adds, and the order of labels."""
    present = _list_axes(stored)
    given = bool(wanted.spec.placements)
    shared = _spell_out(wanted, given)
    # What tells of a system that is new changes no cell.
    shared["calibration"] = {
        label: calibration
        for label, calibration in shared["calibration"].items()
        if label in stored.labels["system"]
    }
    for dim, values in _list_axes(wanted).items():
        order = present.get(dim, values)
        kept = set(values)
        shared["axes"][dim] = [value for value in order if value in kept]
        # Models, data sets and systems have entries; a strategy is its label.
        if dim in LABELS[:3]:
            shared[dim] = {name: entry for name, entry in shared[dim].items() if name in order}
    return _join_differences(_spell_out(stored, given), shared)


def _join_differences(stored: Plain, wanted: Plain) -> str:
    """The first differences in one line, and how many more there are."""
    differences = [
        f"{key}: {there} in the store, {now} now"
        for key, there, now in _walk_differences("", stored, wanted)
    ]
    rest = len(differences) - SHOWN
    return "; ".join(differences[:SHOWN]) + (f" (and {rest} more)" if rest > 0 else "")


def _spell_out(grid: Grid, placements: bool) -> Plain:
    """A design space as plain data, with what its names stand for; without the sweep's own name.

    placements: whether placed groups belong to it, which a sweep finds for itself by default.
    """
    # Without the axes as they were written: `range` and a list of the same values are the same.
    apart = {"name", "axes"} | (set() if placements else {"placements"})
    plain = grid.spec.model_dump(mode="json", exclude=apart)
    entries = {"model": grid.models, "dataset": grid.datasets, "system": grid.systems}
    named: Plain = {
        dim: {member.name: member.definition() for member in members}
        for dim, members in entries.items()
    }
    calibrations = {
        label: calibration.definition() for label, calibration in grid.calibrations.items()
    }
    columns = {name: [*rows.columns] for name, rows in grid.rows.items()}
    return plain | {"axes": _list_axes(grid), "calibration": calibrations, "rows": columns} | named


def _list_axes(grid: Grid) -> Axes:
    """The values of all axes, labelled ones first; a row is the tuple of its values."""
    labelled = {dim: list(labels) for dim, labels in grid.labels.items()}
    numeric = {name: values.tolist() for name, values in grid.axes.items()}
    return labelled | numeric | {name: rows.list_tuples() for name, rows in grid.rows.items()}


def _walk_differences(key: str, stored: object, wanted: object) -> Iterator[tuple[str, str, str]]:
    """Each difference under `key`, in the order of keys: where, and both values in words."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        for name in sorted(set(stored) | set(wanted)):
            yield from _walk_differences(_join_key(key, name), stored.get(name), wanted.get(name))
    elif stored != wanted:
        yield key, _shorten(stored), _shorten(wanted)


def _join_key(key: str, part: str) -> str:
    return f"{key}.{part}" if key else part


def _shorten(value: object) -> str:
    """A value in a line: long lists by their ends."""
    match value:
        case None:
            return "not set"
        case list():
            shown = [_shorten(item) for item in value]
            if len(shown) > LONG:
                shown = [*shown[:3], f"... {len(value)} values ...", *shown[-3:]]
            return "[" + ", ".join(shown) + "]"
        case tuple():
            return "(" + ", ".join(map(_shorten, value)) + ")"
        case dict():
            return str(value.get("name", "{...}"))
        case float():
            return f"{value:.12g}"
    return str(value)
