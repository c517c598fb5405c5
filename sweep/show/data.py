"""Answers for programs: JSON, in SI units and without NaN, and CSV."""

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sweep.show.visible import escape_invisible

Format = Literal["table", "json", "csv"]
Row = Mapping[str, Any]


def print_json(value: object) -> None:
    """Print JSON as its standard has it, which has no word for NaN and infinity: they are null."""
    print(json.dumps(_replace_infinite(value), indent=2, allow_nan=False))


def _replace_infinite(value: object) -> object:
    """Replace NaN and infinities, however deeply nested, by None."""
    if isinstance(value, Mapping):
        return {key: _replace_infinite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_csv(rows: Sequence[Row]) -> None:
    """Print a head, then a line per row; an unknown value is an empty field.

    Texts are the same bytes as in the store, unless a terminal shows them.
    """
    write = escape_invisible if sys.stdout.isatty() else str
    flattened = [
        {
            write(key): write(value) if isinstance(value, str) else value
            for key, value in flatten_record(row).items()
        }
        for row in rows
    ]
    lines = csv.DictWriter(sys.stdout, list_columns(flattened), lineterminator="\n")
    lines.writeheader()
    # NaN, the only value that does not equal itself, is an empty field, too.
    lines.writerows(
        {key: value for key, value in row.items() if value == value} for row in flattened
    )


def flatten_record(row: Row, prefix: str = "") -> dict[str, Any]:
    """Nested records as `outer.inner` keys, lists joined by commas, tuples by ends of lines."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat |= flatten_record(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            flat[prefix + key] = (", " if isinstance(value, list) else "\n").join(map(str, value))
        else:
            flat[prefix + key] = value
    return flat


def list_columns(rows: Sequence[Row]) -> list[str]:
    """The columns, in the order in which rows bring them."""
    return list(dict.fromkeys(key for row in rows for key in row))
