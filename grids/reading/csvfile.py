"""CSV tables of users: rows by column name, with their place in the file; texts as fields."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from paradl.grids.reading.errors import InputError, find_meant, format_count, is_number, shorten
from paradl.grids.reading.textfile import read_text

Record = dict[str, str]
# Spreadsheets evaluate a field that begins with one of these, and =WEBSERVICE(...) sends it away.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def quote_formula(text: str) -> str:
    """Return a text as a field that no spreadsheet evaluates: an apostrophe before it, if need be.

    Numbers are left as they are.
    """
    return f"'{text}" if text.startswith(FORMULAS) and not is_number(text) else text


def read_records(
    path: Path, required: Sequence[str], optional: Sequence[str] | None
) -> Iterator[tuple[str, Record]]:
    """Yield the rows of a table: place ("file:line"), and fields by column.

    Blank lines are skipped. A column that is neither required nor optional is refused, since it may
    be misspelt. optional: None allows any other column, as other programs write them.
    """
    rows = read_rows(path)
    where, names = next(rows, (str(path), []))
    _check_header(names, where, required, optional)
    for where, fields in rows:
        if len(fields) != len(names):
            what = f"expected {format_count(len(names), 'field')}, got {len(fields)}"
            raise InputError(what, where=where, advice="quote a field that has a comma in it")
        yield where, dict(zip(names, fields, strict=True))


def read_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of each non-blank line, the header first."""
    # csv needs the original line ends: a quoted field may contain some.
    lines = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    before = 0
    try:
        for fields in lines:
            # A quoted field may span lines: a row begins after the end of the last one.
            first, before = before + 1, lines.line_num
            stripped = [field.strip() for field in fields]
            if any(stripped):
                yield f"{path}:{first}", stripped
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", where=f"{path}:{before + 1}") from None


def _check_header(
    names: Sequence[str], where: str, required: Sequence[str], optional: Sequence[str] | None
) -> None:
    separator = next((mark for mark in ";\t" if len(names) == 1 and mark in names[0]), None)
    if separator is not None:
        what = f"expected columns separated by commas, got {separator!r}"
        raise InputError(what, where=where)
    for column in names if optional is not None else ():
        if column not in (*required, *(optional or ())):
            raise InputError.unknown("column", column, (*required, *(optional or ())), where=where)
    counts = Counter(filter(None, names))
    twice = next((column for column, count in counts.items() if count > 1), None)
    if twice is not None:
        raise InputError(f"the column {shorten(twice)} is repeated", where=where, advice="keep one")
    missing = [column for column in required if column not in names]
    if missing:
        others = ((name, find_meant(name, missing)) for name in names if name not in required)
        renames = [f"{name} to {meant}" for name, meant in others if meant]
        advice = "rename" if renames else "required:"
        raise InputError(
            f"the column {missing[0]} is missing",
            where=where,
            advice=f"{advice} {', '.join(renames or required)}",
        )
