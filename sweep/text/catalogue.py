"""The catalogue as a table, and what importers understood of an entry."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, cast

from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import format_quantity
from paradl.sweep.answers.types.catalogue import LevelRow, RatedRun, SystemRow
from paradl.sweep.text.columns import format_cell, format_percent
from paradl.sweep.text.data import Format, Row
from paradl.sweep.text.tables import print_table, show, show_one, show_sections
from paradl.sweep.text.visible import tell

if TYPE_CHECKING:
    from paradl.sweep.importing.machines.machine import ImportedMachine
    from paradl.sweep.importing.networks.graph import ImportedNetwork


def show_entries(rows: Sequence[Row], form: Format) -> None:
    """Print catalogue entries."""
    if form == "json":
        show(rows, form)
        return
    # A terminal has no room for sources, nor for all peaks and the power of several systems.
    hidden = {"source", "watts"} if len(rows) > 1 else {"source"}
    if form == "table":
        rows = [{key: row[key] for key in row if key not in hidden} for row in rows]
    if form == "table" and len(rows) > 1:
        rows = [_keep_one_peak(row) for row in rows]
    show([{key: _format(key, row[key]) for key in row} for row in rows], form)


def _keep_one_peak(row: Row) -> Row:
    """Return a system's row with the peak in the precision that most train in."""
    if "tensor_peaks" not in row:
        return row
    system = cast(SystemRow, row)
    peaks = {"fp32": system["peak_flops"], **system["tensor_peaks"]}
    usual = next((name for name in ("bf16", "amp", "fp16") if name in peaks), "fp32")
    peak = {"peak": f"{usual} {format_quantity(peaks[usual], 'FLOP/s')}"}
    return {
        name: value
        for key, value in row.items()
        for name, value in (peak if key == "peak_flops" else {key: value}).items()
        if name != "tensor_peaks"
    }


def _format(key: str, value: object) -> object:
    """Return a value as it stands in a cell: peaks and network levels take a line each."""
    if key == "tensor_peaks" and isinstance(value, dict):
        return tuple(f"{name} {format_quantity(peak, 'FLOP/s')}" for name, peak in value.items())
    if key == "levels" and isinstance(value, list):
        return tuple(chain(*map(_describe_level, value)))
    if key == "value" and isinstance(value, dict):  # of a parameter, by precision
        ends = dict.fromkeys(map(format_cell, (min(value.values()), max(value.values()))))
        return " to ".join(ends)
    return value


def _describe_level(level: LevelRow) -> Iterator[str]:
    """Yield `rack, 136 PEs: 40.5 us, 12.5 GB/s, 3:1`, and a line per measured collective."""
    latency = format_quantity(level["latency"], "s")
    bandwidth = format_quantity(level["bandwidth"], "B/s")
    ratio = level["oversubscription"]
    # An oversubscription of 1 is what readers expect; it goes without saying.
    narrower = "" if ratio == 1 else f", {ratio:g}:1"
    yield f"{level['name']}, {format_count(level['pes'], 'PE')}: {latency}, {bandwidth}{narrower}"
    for name, measured in (level.get("collectives") or {}).items():
        bandwidth = format_quantity(max(line["bandwidth"] for line in measured or ()), "B/s")
        yield f"  {name} {bandwidth}, measured"


def show_machine(imported: "ImportedMachine", form: Format) -> None:
    """Print the collectives of an imported machine; notes on stderr."""
    answer = vars(imported) | {"system": imported.system.name}
    # For the picture: hundreds of numbers have no room in a cell.
    series = ("sizes", "measured", "predicted")
    plain = [{k: value for k, value in row.items() if k not in series} for row in imported.rows]
    show_sections(answer, plain, form, lambda: print_table([*map(_describe, imported.rows)]))
    if form == "table":
        for note in imported.notes:
            tell(f"paradl: {note}")
        for key, tag in imported.tags.items():
            if tag.startswith("assumed"):
                tell(f"paradl: {key}: {tag}")


def _describe(row: RatedRun) -> dict[str, str | int]:
    """Return a row as people read it."""
    return {
        "collective": row["collective"],
        "pes": row["pes"],
        "rows": row["rows"],
        "lines": row["lines"],
        "latency of a step": format_quantity(row["step_latency"], "s", 3),
        "bus bandwidth": format_quantity(row["bus_bandwidth"], "B/s", 3),
        "median error": format_percent(row["median_error"]),
        "above 1 MB": format_percent(row["median_error_above_1MB"]),
        "worst": format_percent(row["worst_error"]),
    }


def show_network(network: "ImportedNetwork", form: Format) -> None:
    """Print what a network has; notes on stderr."""
    table = network.table
    row = {
        "model": network.architecture.name,
        "layers": len(table),
        "parameters": table.parameters,
        "macs": table.macs,
    }
    show_one(row, form)
    for note in network.notes:
        tell(f"paradl: {note}")
