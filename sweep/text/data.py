"""Answers for programs: JSON and CSV, in SI units."""

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

from paradl.grids.reading.csvfile import quote_formula
from paradl.kernels.names.parallelisms import NAMED
from paradl.sweep.text.visible import escape_invisible

Format = Literal["table", "json", "csv"]
# A row of any answer, by field.
Row = Mapping[str, object]
# Strategies with a name of their own, by label.
NAMES = {label: name for name, label in NAMED.items()}


def print_json(value: object) -> None:
    """Print standard JSON, which cannot express NaN and infinity: they become null."""
    # Python would write NaN, which is no JSON.
    print(json.dumps(_replace_infinite(value), indent=2, allow_nan=False))


def _replace_infinite(value: object) -> object:
    """Replace NaN and infinities by None at every depth."""
    if isinstance(value, float):  # most are: first, they take half as long
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _replace_infinite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(part) for part in value]
    return value


def print_csv(rows: Sequence[Row]) -> None:
    """Print a header, then one line per row; an unknown value is an empty field."""
    # Programs get names byte for byte; a terminal must not execute what they contain, nor must a
    # spreadsheet.
    write = escape_invisible if sys.stdout.isatty() else str
    flattened = [
        {
            write(quote_formula(key)): write(quote_formula(value))
            if isinstance(value, str)
            else value
            for key, value in flatten_record(row).items()
        }
        for row in rows
    ]
    lines = csv.DictWriter(sys.stdout, list_columns(flattened), lineterminator="\n")
    lines.writeheader()
    # Only NaN does not equal itself: it becomes an empty field.
    lines.writerows(
        {key: value for key, value in row.items() if value == value} for row in flattened
    )


def flatten_record(row: Row, prefix: str = "") -> dict[str, object]:
    """Flatten a record: keys `outer.inner`, lists joined by commas, tuples by line breaks."""
    flat: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat |= flatten_record(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple) and not hasattr(value, "_fields"):  # no number
            flat[prefix + key] = (", " if isinstance(value, list) else "\n").join(map(str, value))
        else:
            flat[prefix + key] = value
    return flat


def list_columns(rows: Sequence[Row]) -> list[str]:
    """List the keys of all rows, in the order in which they first appear."""
    return list(dict.fromkeys(key for row in rows for key in row))
