"""Entries of the catalogue as a table: a line per entry."""

from collections.abc import Sequence

from grids.reading.units import format_quantity
from sweep.show.data import Format, Row
from sweep.show.rows import show


def show_entries(rows: Sequence[Row], form: Format) -> None:
    """Print entries; people see no sources, which would make every table too wide to read."""
    if form == "json":
        show(rows, form)
        return
    hidden = "source" if form == "table" else ""
    lines = [{key: value for key, value in row.items() if key != hidden} for row in rows]
    show([line | _list_levels(line) for line in lines], form)


def _list_levels(row: Row) -> dict[str, tuple[str, ...]]:
    """The levels of a system's network, a line each; nothing of other entries."""
    if "levels" not in row:
        return {}
    lines = []
    for level in row["levels"]:
        latency = format_quantity(level["latency"], "s")
        bandwidth = format_quantity(level["bandwidth"], "B/s")
        share = level["oversubscription"]
        narrower = "" if share == 1 else f", {share:g}:1"
        lines.append(f"{level['name']}, {level['pes']} PEs: {latency}, {bandwidth}{narrower}")
    return {"levels": tuple(lines)}
