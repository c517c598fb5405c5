"""The catalogue as a table, one line per entry."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from grids.reading.units import format_quantity
from sweep.show.data import Format, Row
from sweep.show.rows import show


def show_entries(rows: Sequence[Row], form: Format) -> None:
    """Print catalogue entries."""
    if form == "json":
        show(rows, form)
        return
    # A terminal has no room for sources, nor for the peaks of several systems.
    wide = {"source", "tensor_peaks"} if len(rows) > 1 else {"source"}
    hidden = wide if form == "table" else set()
    show([{key: _format(key, row[key]) for key in row if key not in hidden} for row in rows], form)


def _format(key: str, value: Any) -> Any:
    """Return a value as it stands in a cell: peaks and network levels take a line each."""
    if key == "tensor_peaks":
        return tuple(f"{name} {format_quantity(peak, 'FLOP/s')}" for name, peak in value.items())
    return tuple(chain(*map(_describe_level, value))) if key == "levels" else value


def _describe_level(level: Row) -> Iterator[str]:
    """Yield `rack, 136 PEs: 40.5 us, 12.5 GB/s, 3:1`, and a line per measured collective."""
    latency = format_quantity(level["latency"], "s")
    bandwidth = format_quantity(level["bandwidth"], "B/s")
    ratio = level["oversubscription"]
    narrower = "" if ratio == 1 else f", {ratio:g}:1"
    # An oversubscription of 1 is what readers expect; it goes without saying.
    yield f"{level['name']}, {level['pes']} PEs: {latency}, {bandwidth}{narrower}"
    for name, measured in (level.get("collectives") or {}).items():
        bandwidth = format_quantity(max(line["bandwidth"] for line in measured), "B/s")
        yield f"  {name} {bandwidth}, measured"
