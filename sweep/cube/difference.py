"""Differences of two design spaces in words, and the values that one adds to the other."""

from collections.abc import Iterator
from typing import Any

from paradl.grids.grid import LABELS, Grid
from paradl.grids.placing.group import PlacedGroup

# A message names this many differences, and only the ends of longer lists, to stay under 1 kB.
SHOWN = 3
LONG = 8
# Keys of entries that change no answer.
FACTS = {"title", "source"}

Plain = dict[str, Any]
Axes = dict[str, list[Any]]


def describe_difference(stored: Grid, wanted: Grid) -> str:
    """Describe the first differences as `key: stored, wanted`; empty if the cells are the same.

    Only the meaning counts, not how an axis or a default is written.
    """
    return _join_differences(*_spell_out_both(stored, wanted))


def list_differences(stored: Grid, wanted: Grid) -> list[tuple[str, str, str]]:
    """List all differences except those of axes: key, and both values in words."""
    first, second = _spell_out_both(stored, wanted)
    return list(_walk_differences("", first | {"axes": {}}, second | {"axes": {}}))


def list_added_values(stored: Grid, wanted: Grid) -> Axes:
    """Return the values of each axis that only `wanted` has."""
    # Sets, since an axis may have ten million values.
    present = {dim: set(values) for dim, values in _list_axes(stored).items()}
    new = {
        dim: [value for value in values if value not in present.get(dim, ())]
        for dim, values in _list_axes(wanted).items()
    }
    return {dim: values for dim, values in new.items() if values}


def describe_other_changes(stored: Grid, wanted: Grid) -> str:
    """Describe the first differences besides values that `wanted` adds and the order of labels."""
    before, shared = _spell_out_both(stored, wanted)
    for dim, values in shared["axes"].items():
        kept = set(values)
        order = before["axes"].get(dim, values)
        shared["axes"][dim] = [value for value in order if value in kept]
    # Models, data sets and systems have entries; a strategy is only its label.
    known = {dim: before["axes"][dim] for dim in LABELS[:3]}
    # The calibration of a new system changes no stored cell.
    known["calibration"] = known["system"]
    for key, labels in known.items():
        shared[key] = {name: entry for name, entry in shared[key].items() if name in labels}
    return _join_differences(before, shared)


def _join_differences(stored: Plain, wanted: Plain) -> str:
    """Write the first differences in one line, and the number of the others."""
    differences = [
        f"{key}: {before} in the store, {now} now"
        for key, before, now in _walk_differences("", stored, wanted)
    ]
    rest = len(differences) - SHOWN
    return "; ".join(differences[:SHOWN]) + (f" (and {rest} more)" if rest > 0 else "")


def _spell_out_both(stored: Grid, wanted: Grid) -> tuple[Plain, Plain]:
    """Spell both out, with placed groups if one of both differs; only one may have some."""
    mine, other = _list_groups(stored), _list_groups(wanted)
    differ = any(mine[at] != other[at] for at in mine.keys() & other.keys())
    return _spell_out(stored, differ), _spell_out(wanted, differ)


def _spell_out(grid: Grid, placements: bool) -> Plain:
    """Return a design space as plain data, with entries for names; placements: with its groups."""
    # Axes are listed by value instead, since a `range` and a list may be the same.
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


def _list_groups(grid: Grid) -> dict[tuple[object, ...], PlacedGroup]:
    """Return placed groups by model, data set, system, devices and segments."""
    return {
        (entry.model, entry.dataset, entry.system, *size): group
        for entry in grid.spec.placements
        for size, group in entry.list_groups().items()
    }


def _list_axes(grid: Grid) -> Axes:
    """Return the values of all axes, labelled ones first; a zipped axis has tuples."""
    labelled = {dim: list(labels) for dim, labels in grid.labels.items()}
    numeric = {name: values.tolist() for name, values in grid.axes.items()}
    return labelled | numeric | {name: rows.list_tuples() for name, rows in grid.rows.items()}


def _walk_differences(key: str, stored: object, wanted: object) -> Iterator[tuple[str, str, str]]:
    """Yield the differences under `key`: full key, and both values in words."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        label, dot, _ = key.partition(".")
        for name in sorted({*stored, *wanted} - (FACTS if dot and label in LABELS else set())):
            nested = f"{key}.{name}" if key else name
            yield from _walk_differences(nested, stored.get(name), wanted.get(name))
    elif stored != wanted:
        yield key, _shorten(stored), _shorten(wanted)


def _shorten(value: object) -> str:
    match value:
        case None:
            return "not set"
        case list():
            shown = [_shorten(item) for item in value]
            if len(shown) > LONG:
                few = 1 if isinstance(value[0], tuple) else 3  # a row is long by itself
                shown = [*shown[:few], f"... {len(value):,} values ...", *shown[-few:]]
            return "[" + ", ".join(shown) + "]"
        case tuple():
            return "(" + ", ".join(map(_shorten, value)) + ")"
        case dict():
            return str(value.get("name", "{...}"))
        case float():
            return f"{value:.12g}"
    return str(value)
