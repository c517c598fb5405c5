"""Entries of the catalogue as a table: a line an entry."""

from collections.abc import Sequence
from typing import Any

from grids.reading.units import format_quantity
from sweep.show.tables import Format, Row, show


def show_entries(rows: Sequence[Row], form: Format) -> None:
    """Print entries; people see no sources, which would make every table too wide to read."""
    if form == "json":
        show(rows, form)
        return
    # Programs get them: CSV has room.
    hidden = {"source"} if form == "table" else set()
    show([_lay_out_entry(row, hidden) for row in rows], form)


def _lay_out_entry(row: Row, hidden: set[str]) -> dict[str, Any]:
    """A line without the keys in `hidden`, a system's levels each in a line of its own."""
    columns = {key: value for key, value in row.items() if key not in hidden}
    if "levels" in columns:
        columns["levels"] = tuple(map(_format_level, columns["levels"]))
    return columns


def _format_level(level: Row) -> str:
    latency, bandwidth = (
        format_quantity(level["latency"], "s"),
        format_quantity(level["bandwidth"], "B/s"),
    )
    share = level["oversubscription"]
    narrower = "" if share == 1 else f", {share:g}:1"
    return f"{level['name']}, {level['pes']} PEs: {latency}, {bandwidth}{narrower}"
