"""Answers as text: a table for people, JSON or CSV for programs. JSON has SI units and no NaN."""

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grids.entries.parameters import PARAMETERS
from grids.reading.units import format_quantity
from kernels.terms import TERMS
from sweep.show.visible import escape_invisible

if TYPE_CHECKING:
    import pandas as pd

Format = Literal["table", "json", "csv"]
Row = Mapping[str, Any]

# Shown in a column's head, and behind a value that stands alone.
UNITS = dict.fromkeys(
    ("epoch_time", "comp_time", "comm_time", "fastest_time", "seconds_per_epoch", *TERMS),
    "s/epoch",
) | dict.fromkeys(("train_time", "soonest_time"), "s")
# Whose percentiles are no seconds.
COUNTS = ("intervals.epochs",)
# Shown in each cell, with an SI prefix.
PREFIXED = {
    "memory": "B",
    "memory_parts": "B",
    "bytes": "B",
    "macs": "MAC",
    "iteration_time": "s",
    "iteration_comp_time": "s",
    "iteration_comm_time": "s",
    "seconds_per_iteration": "s",
    "seconds_per_sample": "s",
    **{each.name: each.unit for each in PARAMETERS.values() if each.unit != "1"},
    "gradient_delta": "B",
    **dict.fromkeys(("p10", "p50", "p90"), "s"),
    **dict.fromkeys(("group_latency", "replica_latency", "halo_latency"), "s"),
    **dict.fromkeys(("group_bandwidth", "replica_bandwidth", "halo_bandwidth"), "B/s"),
}


def show(rows: "pd.DataFrame | Sequence[Row]", form: Format, title: str = "") -> None:
    """Print rows to stdout."""
    records = rows if isinstance(rows, Sequence) else rows.to_dict("records")
    plain = [{str(key): value for key, value in row.items()} for row in records]
    if form == "json":
        print_json(plain)
    elif form == "csv":
        print_csv(plain)
    else:
        print_table(plain, title)


def show_one(row: Row, form: Format, title: str = "") -> None:
    """Print one record: a line a key for people."""
    if form == "json":
        print_json(row)
    elif form == "csv":
        print_csv([row])
    else:
        print_record(row, title)


def print_json(value: object) -> None:
    """Print JSON as its standard has it, which has no word for NaN and infinity: they are null."""
    print(json.dumps(_replace_infinite(value), indent=2, allow_nan=False))


def _replace_infinite(value: object) -> object:
    """The value with None for each NaN and infinity in it."""
    if isinstance(value, Mapping):
        return {key: _replace_infinite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_csv(rows: Sequence[Row]) -> None:
    """Print a head, then a line a row; what is not known is empty.

    It is data, and the same bytes as in the store, unless a terminal shows it.
    """
    flattened = [flatten_record(row) for row in rows]
    if sys.stdout.isatty():
        flattened = [
            {escape_invisible(key): _escape_text(each) for key, each in row.items()}
            for row in flattened
        ]
    lines = csv.DictWriter(sys.stdout, _list_columns(flattened), lineterminator="\n")
    lines.writeheader()
    # NaN, the only value that is no equal of its own, is left out: an empty field.
    lines.writerows(
        {key: value for key, value in row.items() if value == value} for row in flattened
    )


def _escape_text(value: object) -> object:
    """The value, of a text what can be seen of it."""
    return escape_invisible(value) if isinstance(value, str) else value


def flatten_record(row: Row, prefix: str = "") -> dict[str, Any]:
    """Nested records as `outer.inner` keys, lists joined, and the lines of tuples."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat |= flatten_record(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            flat[prefix + key] = ", ".join(map(str, value))
        elif isinstance(value, tuple):
            flat[prefix + key] = "\n".join(map(str, value))
        else:
            flat[prefix + key] = value
    return flat


def print_record(row: Row, title: str = "") -> None:
    """Print a line a key, each value with its unit."""
    lines = [
        {"": key, "value": _format_with_unit(key, value)}
        for key, value in flatten_record(row).items()
    ]
    print_table(lines, title)


def _format_with_unit(key: str, value: object) -> str:
    """A value that stands alone, with the unit of its key, or of what its key is a part of."""
    whole, _, name = key.rpartition(".")
    unit = None if whole in COUNTS else PREFIXED.get(whole, PREFIXED.get(name))
    text = format_cell(value, unit)
    if name not in UNITS or value is None:
        return text
    # What passes while PEs compute stands among terms that add up to the whole.
    hidden = name in TERMS and TERMS[name].part == "hidden"
    return f"{text} {UNITS[name]}" + (" (no part of the sum)" if hidden else "")


def print_table(rows: Sequence[Row], title: str = "") -> None:
    """Print aligned columns; numbers to four digits, to the right."""
    table = Table(
        title=escape_invisible(title) or None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    keys = _list_columns(rows)
    for key in keys:
        head = escape_invisible(key) + (f"\n[{UNITS[key]}]" if key in UNITS else "")
        numeric = any(isinstance(row.get(key), int | float) for row in rows)
        # A Text is shown as it is: of a plain string rich would read what stands in brackets as
        # markup.
        table.add_column(Text(head), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_make_text(row.get(key), PREFIXED.get(key)) for key in keys))
    console = Console()
    if not console.is_terminal:  # a pipe has no width: columns keep theirs
        console = Console(width=10_000, no_color=True)
    console.print(table)


def _make_text(value: object, unit: str | None) -> Text:
    """A cell of a table: one line, of a tuple one line an item."""
    lines = value if isinstance(value, tuple) else (value,)
    return Text("\n".join(escape_invisible(format_cell(each, unit)) for each in lines))


def _list_columns(rows: Sequence[Row]) -> list[str]:
    """The columns, in the order in which rows bring them."""
    return list(dict.fromkeys(key for row in rows for key in row))


def format_cell(value: object, unit: str | None = None) -> str:
    """A value as people read it."""
    if value is None or value != value:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit is not None and isinstance(value, int | float):
        return format_quantity(value, unit)
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.4g}"
    if isinstance(value, int | float):
        # Beyond, not every digit is known: float64 counts exactly to 2**53, 9e15.
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
