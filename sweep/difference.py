"""Where two design spaces differ, in words."""

from collections.abc import Iterator
from typing import Any

from grids.grid import Grid

SHOWN = 3
LONG = 8

Plain = dict[str, Any]


def difference(stored: Grid, asked: Grid) -> str:
    """The first differences, as `key: stored, asked`; empty where both have the same cells.

    What counts is what they mean: it is no difference how an axis is written, whether a default is
    written at all, and what the sweep is called.
    """
    found = list(_differences("", _meaning(stored), _meaning(asked)))
    more = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more


def _meaning(grid: Grid) -> Plain:
    plain = grid.spec.model_dump(mode="json", exclude={"name", "axes"})
    entries = {"model": grid.models, "dataset": grid.datasets, "system": grid.systems}
    named: Plain = {
        dim: {each.name: each.definition() for each in found} for dim, found in entries.items()
    }
    labelled = {dim: list(labels) for dim, labels in grid.labels.items()}
    numeric = {name: values.tolist() for name, values in grid.axes.items()}
    return plain | {"axes": labelled | numeric} | named


def _differences(key: str, stored: object, asked: object) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(asked, dict):
        for each in sorted(set(stored) | set(asked)):
            yield from _differences(_join(key, each), stored.get(each), asked.get(each))
    elif stored != asked:
        yield f"{key}: {_short(stored)} in the store, {_short(asked)} now"


def _join(key: str, part: str) -> str:
    return f"{key}.{part}" if key else part


def _short(value: object) -> str:
    """A value in a line: long lists by their ends."""
    match value:
        case None:
            return "nothing"
        case list():
            shown = [_short(each) for each in value]
            if len(shown) > LONG:
                shown = [*shown[:3], f"... {len(value)} values ...", *shown[-3:]]
            return "[" + ", ".join(shown) + "]"
        case dict():
            return str(value.get("name", "{...}"))
        case float():
            return f"{value:.12g}"
    return str(value)
