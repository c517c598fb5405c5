"""Limits as text: with their ranges beside them, where these are known."""

from collections.abc import Sequence
from typing import Any

from sweep.show.rows import show_rows
from sweep.show.tables import Format, Row

TIMES = ("fastest_time", "soonest_time")
COUNTS = ("fastest_pe", "soonest_pe", "efficient_pe")


def show_limits(rows: Sequence[Row], form: Format, every: bool) -> None:
    """Print what `limits` answers."""
    show_rows(rows, form, every, _describe, above=None)


def _describe(row: Row) -> Row:
    """A line: the interval of its time behind it, PE counts with their ranges."""
    line: dict[str, Any] = {}
    for key, value in row.items():
        if key.endswith(("_p10", "_p90")):
            continue
        low, high = row.get(f"{key}_p10"), row.get(f"{key}_p90")
        if key in COUNTS and (low, high) != (None, None) and not low == value == high:
            line[key] = f"{_write(value)} ({_write(low)} to {_write(high)})"
        elif key == "marks":
            line[key] = ", ".join(value) or None
        else:
            line[key] = value
        if key in TIMES and f"{key}_p10" in row:
            known = low is not None and high is not None
            line["80 % interval"] = f"{low:.4g} to {high:.4g}" if known else None
    return line


def _write(count: int | None) -> str:
    return "none" if count is None else f"{count:,}"
