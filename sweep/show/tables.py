"""Answers as text: a table for people, JSON or CSV for programs. JSON has SI units and no NaN."""

import csv
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from kernels.names.terms import TERMS
from sweep.answers.types.units import PREFIXED, UNITS
from sweep.show.columns import Column, format_cell, make_column
from sweep.show.visible import escape_invisible

if TYPE_CHECKING:
    import pandas as pd

Format = Literal["table", "json", "csv"]
Row = Mapping[str, Any]

# Percentiles that are no seconds.
COUNTS = ("intervals.epochs",)


def show(
    rows: "pd.DataFrame | Sequence[Row]",
    form: Format,
    title: str = "",
    fixed: Collection[str] = (),
) -> None:
    """Print rows to stdout. fixed: columns that the question fixed, for losers without one, too."""
    records = rows if isinstance(rows, Sequence) else rows.to_dict("records")
    plain = [{str(key): value for key, value in row.items()} for row in records]
    if form == "json":
        print_json(plain)
    elif form == "csv":
        print_csv(plain)
    else:
        print_table(plain, title, "csv", fixed)


def show_one(row: Row, form: Format, title: str = "") -> None:
    """Print one record: a line a key for people."""
    if form == "json":
        print_json(row)
    elif form == "csv":
        print_csv([row])
    else:
        print_record(row, title)


def show_sections(
    answer: object, rows: Sequence[Row], form: Format, print_sections: Callable[[], None]
) -> None:
    """Print an answer of several parts: JSON has all of it, CSV its rows, people read sections."""
    if form == "json":
        print_json(answer)
    elif form == "csv":
        print_csv(rows)
    else:
        print_sections()


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
    print_table(lines, title, fixed=None)


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


def print_table(
    rows: Sequence[Row],
    title: str = "",
    complete: Format = "json",
    fixed: Collection[str] | None = (),
) -> None:
    """Print aligned columns; numbers to four digits, to the right.

    fixed: what is the same in every row is told once, in a line above, and of these columns, too,
    what the rows that have a value share; None: every column is a column. complete: the format that
    has the columns which a terminal has no room for; they are named below.
    """
    # Late: rich takes 0.05 s to import, and JSON needs none of it.
    from sweep.show.widths import draw_table

    columns = {key: make_column(key, rows) for key in _list_columns(rows)}
    shared = {} if fixed is None else _find_shared(rows, columns, fixed)
    width = _measure_width()
    kept = [each for each in columns.values() if each.key not in shared]
    table, left_out = draw_table(kept, width, _choose_rule())
    if left_out and len(rows) == 1:
        print_record(rows[0], title)  # a line a key loses nothing
        return
    constants = [f"{key}: {text}" for key, text in shared.items() if text]
    lines = [
        *([title] if title else []),
        *_join_within(constants, width),
        *table,
        *_name_left_out(left_out, complete, width),
    ]
    print("\n".join([*map(escape_invisible, lines), ""]))


def _find_shared(
    rows: Sequence[Row], columns: Mapping[str, Column], fixed: Collection[str]
) -> dict[str, str]:
    """The texts that several rows share, by column; none where nothing would tell them apart."""
    shared = {}
    for key, column in columns.items() if len(rows) > 1 else ():
        values = [row.get(key) for row in rows]
        known = [value for value in values if value is not None]
        if len(set(column.cells)) == 1 and not isinstance(values[0], tuple):
            shared[key] = _format_with_unit(key, values[0])
        elif key in fixed and known and all(value == known[0] for value in known):
            shared[key] = _format_with_unit(key, known[0])
    return shared if len(shared) < len(columns) else {}


def _measure_width() -> int | None:
    """Characters of a line: of COLUMNS, of the terminal; None: a pipe has no width."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def _choose_rule() -> str:
    """The character under heads, which stdout has to have a code for."""
    return "─" if (sys.stdout.encoding or "").lower().startswith("utf") else "-"


def _name_left_out(keys: Sequence[str], complete: Format, width: int | None) -> list[str]:
    """Lines that name what a table has no room for, and where it is."""
    names = f"left out for width: {', '.join(keys)}"
    return _join_within([names, f"--format {complete} has all"], width) if keys else []


def _join_within(parts: Sequence[str], width: int | None) -> list[str]:
    """The parts, a semicolon between two, in lines of at most `width` characters."""
    joined = "; ".join(parts)
    if width is None:
        return [joined] if joined else []
    return textwrap.wrap(joined, width, break_long_words=False, break_on_hyphens=False)


def _list_columns(rows: Sequence[Row]) -> list[str]:
    """The columns, in the order in which rows bring them."""
    return list(dict.fromkeys(key for row in rows for key in row))
