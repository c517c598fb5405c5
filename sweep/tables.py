"""Answers as text: a table for people, JSON or CSV for programs. JSON has SI units and no NaN."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

Format = Literal["table", "json", "csv"]
Row = Mapping[str, Any]

# Shown in a column's head, and with an SI prefix in each cell.
UNITS = {
    "epoch_time": "s/epoch",
    "comp_time": "s/epoch",
    "comm_time": "s/epoch",
    "fastest_time": "s/epoch",
    "seconds_per_epoch": "s/epoch",
    "seconds_per_iteration": "s",
    "seconds_per_sample": "s/sample",
}
PREFIXED = {
    "memory": "B",
    "bytes": "B",
    "memory_bandwidth": "B/s",
    "peak_flops": "FLOP/s",
    "macs": "MAC",
}
PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def show(rows: pd.DataFrame | Sequence[Row], form: Format, title: str = "") -> None:
    """Print rows to stdout."""
    listed: list[dict[str, Any]] = (
        [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]
        if isinstance(rows, pd.DataFrame)
        else [dict(row) for row in rows]
    )
    if form == "json":
        print(json.dumps(listed, indent=2))
    elif form == "csv":
        print(pd.DataFrame(listed).to_csv(index=False), end="")
    else:
        print_table(listed, title)


def show_one(row: Row, form: Format, title: str = "") -> None:
    """Print one record: a line a key for people."""
    if form == "json":
        print(json.dumps(row, indent=2))
    elif form == "csv":
        print(pd.DataFrame([flat(row)]).to_csv(index=False), end="")
    else:
        lines = [{"": key, "value": value} for key, value in flat(row).items()]
        print_table(lines, title, units=False)


def flat(row: Row, prefix: str = "") -> dict[str, Any]:
    """Nested records as `outer.inner` keys, lists joined."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            found[prefix + key] = ", ".join(map(str, value))
        else:
            found[prefix + key] = value
    return found


def print_table(rows: Sequence[Row], title: str = "", units: bool = True) -> None:
    """Aligned columns; numbers to four digits, to the right."""
    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    for key in keys:
        unit = f"\n[{UNITS[key]}]" if units and key in UNITS else ""
        numeric = any(isinstance(row.get(key), int | float) for row in rows)
        # A backslash keeps rich from taking a unit for markup.
        table.add_column(key + unit.replace("[", r"\["), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(cell(row.get(key), PREFIXED.get(key)) for key in keys))
    console = Console(soft_wrap=False)
    if not console.is_terminal:  # a pipe has no width: columns keep theirs
        console = Console(width=10_000, no_color=True)
    console.print(table)


def cell(value: object, unit: str | None = None) -> str:
    """A value as people read it."""
    if unit is not None and isinstance(value, int | float) and value == value:
        return prefixed(value, unit)
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.4g}"
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return str(value).replace("[", r"\[")


def prefixed(value: float, unit: str) -> str:
    """16e9, "B" as 16 GB."""
    size, prefix = next((each for each in PREFIXES if abs(value) >= each[0]), (1.0, ""))
    return f"{value / size:.4g} {prefix}{unit}"
