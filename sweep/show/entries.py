"""Entries of the catalogue as a table: a line per entry."""

from collections.abc import Sequence

from grids.reading.units import format_quantity
from sweep.show.data import Format, Row
from sweep.show.rows import show


def show_entries(rows: Sequence[Row], form: Format) -> None:
    """Print entries; people see no sources, and peaks of one system alone: tables are wide."""
    if form == "json":
        show(rows, form)
        return
    wide = {"source", "tensor_peaks"} if len(rows) > 1 else {"source"}
    hidden = wide if form == "table" else set()
    lines = [{**row} | _list_peaks(row) | _list_levels(row) for row in rows]
    show([{key: line[key] for key in line if key not in hidden} for line in lines], form)


def _list_peaks(row: Row) -> dict[str, tuple[str, ...]]:
    """The peaks of a system's PE in lower precisions, a line each; nothing of other entries."""
    if "tensor_peaks" not in row:
        return {}
    peaks = row["tensor_peaks"].items()
    lines = tuple(f"{name} {format_quantity(peak, 'FLOP/s')}" for name, peak in peaks)
    return {"tensor_peaks": lines}


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
        for name, measured in (level.get("collectives") or {}).items():
            bandwidth = format_quantity(max(line["bandwidth"] for line in measured), "B/s")
            lines.append(f"  {name} {bandwidth}, measured")
    return {"levels": tuple(lines)}
