"""Answers as `--format` says: tables that fit their terminal, records, or JSON and CSV.

Prose wraps, headers break, columns are left out. No text is shortened: where space is tight, a
whole column is left out and named below the table.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from paradl.grids.entries.layout_words import LAYOUT
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import format_count
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS
from paradl.sweep.text.columns import Column, format_alone, make_column, measure_text
from paradl.sweep.text.data import (
    NAMES,
    Format,
    Row,
    flatten_record,
    list_columns,
    print_csv,
    print_json,
)
from paradl.sweep.text.visible import escape_invisible, tell

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound=Row)

MARGIN = " "
GAPS = (3, 2)  # characters between two columns, and in a narrow table
WIDEST = 100_000  # characters: a pipe has no width
# Longer tables do without rich: 32,768 rows of `limits` took 18.9 s with it, 0.4 s without.
LONG = 300

# Left out first where a table is too wide; then all other columns, from the right.
EXPENDABLE = (
    *("precision", "software", "source", "feasible", "comm_time", "comp_time", "faster_than_next"),
    *("gathered_items", "halo_items", "backward"),
)
# Never left out, since they say what a row is about; swept parameters go last for the same reason.
NEVER = ("", "value", "rank", *LABELS, LAYOUT, "pe", "p", "b")
# Where a table is too wide, rows of each place get a title with these, if it has several rows.
PLACE = (*LABELS[:3], "precision", "software")
FEW = 3  # rows of a place, on average

RECORD = ("", "value")  # the columns of a record; even constant ones stay columns


def print_text(*lines: str) -> None:
    """Print sentences, wrapped to the width of the terminal, and an empty line."""
    width = _measure_width()
    wrapped = [escape_invisible(part) for line in lines for part in _wrap(line, width)]
    print("\n".join([*wrapped, ""]))


def print_record(row: Row, title: str = "", within: str = "") -> None:
    """Print one line per key, each value with its unit.

    within: the key of the record in an answer: some parameters share a name with a term.
    """
    place = f"{within}." if within else ""
    flat = flatten_record(_write_words(row)).items()
    texts = [{"": key, "value": format_alone(f"{place}{key}", value)} for key, value in flat]
    print_table(texts, title)


def print_table(
    rows: Sequence[Row], title: str = "", complete: Format = "json", asked: Sequence[str] = ()
) -> None:
    """Print aligned columns under a title.

    Values that all rows share are printed once, above the table; where the terminal has no room for
    all columns, those of a place above its rows. asked: columns that are never left out. complete:
    the format to recommend where others are.
    """
    rows = [_write_words(_fold_layout(row)) for row in rows]
    columns = {key: make_column(key, rows) for key in list_columns(rows)}
    shared = _find_shared(rows, columns)
    width = _measure_width()
    kept = [column for key, column in columns.items() if key not in shared]
    table, left_out = draw_table(kept, width, asked)
    # Of a single row, a line per key has room for everything, whatever the width.
    if left_out and len(rows) == 1:
        print_record({key: value for key, value in rows[0].items() if value is not None}, title)
        return
    if left_out and (places := _group_places(rows, shared)):
        table, left_out = _draw_places(places, [column.key for column in kept], width, asked)
    # A terminal in ASCII cannot print the rule below the header.
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        table = [line.replace("─", "-") for line in table]
    constants = ", ".join(filter(None, shared.values()))
    rest = f"left out for width: {', '.join(left_out)}; --format {complete} has all"
    lines = [
        *([title] if title else []),
        *_wrap(constants, width),
        *table,
        *(_wrap(rest, width) if left_out else []),
    ]
    print("\n".join([*map(escape_invisible, lines), ""]).removeprefix("\n"))


def _fold_layout(row: Row) -> Row:
    """Return the row without what the words of its layout, if it has one, say as well."""
    if not isinstance(row.get(LAYOUT), str):
        return row
    said = ("strategy", "degrees", *LAYOUT_COLUMNS)
    return {key: value for key, value in row.items() if key not in said}


def _group_places(
    rows: Sequence[Row], shared: Mapping[str, str]
) -> dict[tuple[str, ...], list[Row]]:
    """Group rows by the names of their place that they do not share.

    Empty if most places have few rows, or if their rows alternate: their order says something.
    """
    names = [name for name in PLACE if name in rows[0] and name not in shared]
    runs = [
        (place, [*of_place])
        for place, of_place in groupby(rows, lambda row: tuple(str(row.get(n)) for n in names))
    ]
    is_split = names and len(rows) >= FEW * len(runs) and len(dict(runs)) == len(runs)
    return dict(runs) if is_split else {}


def _draw_places(
    places: Mapping[tuple[str, ...], Sequence[Row]],
    keys: Sequence[str],
    width: int | None,
    asked: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Return the lines of a table for each place, and the columns left out of all of them."""
    tables = [
        [make_column(key, rows) for key in keys if key not in PLACE] for rows in places.values()
    ]
    # All lists begin alike: columns are left out in one order.
    left_out = max((draw_table(table, width, asked)[1] for table in tables), key=len)
    lines: list[str] = []
    for place, table in zip(places, tables, strict=True):
        shown = [column for column in table if column.key not in left_out]
        lines += ["", ", ".join(place), *draw_table(shown, width, asked)[0]]
    return lines, left_out


def _write_words(row: Row) -> Row:
    """Return the row with numbers of parameters as words, and with short names of strategies."""
    # The exact type, since True is an int.
    return {
        key: PARAMETERS[key].write(value)
        if key in PARAMETERS and PARAMETERS[key].words and type(value) is int
        else NAMES.get(str(value), value)
        if key == "strategy"
        else value
        for key, value in row.items()
    }


def _find_shared(rows: Sequence[Row], columns: Mapping[str, Column]) -> dict[str, str]:
    """Return the text above the table for each column that is constant; empty: no value at all."""
    shared = {}
    for key, column in columns.items():
        value = rows[0].get(key)
        # A single row is constant throughout: only what identifies it moves above the table.
        may_move = len(rows) > 1 or key in LABELS or key in PARAMETERS or value is None
        constant = len(set(column.cells)) == 1 and not isinstance(value, tuple)
        if may_move and constant and key not in RECORD:
            text = "" if column.cells[0] in ("", "-") else format_alone(key, value)
            shared[key] = text if key in LABELS or not text else f"{key} {text}"
    return shared if len(shared) < len(columns) else {}


def draw_table(
    columns: Sequence[Column], width: int | None, asked: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Return a table's lines, and the keys of the columns left out to fit `width` characters.

    Prose wraps first, then headers break, then columns go one at a time. Labels, and what was
    asked, stay even where they are too wide. width: None for a pipe.
    """
    room = WIDEST if width is None else width - len(MARGIN)
    expendable = _order_expendable([column.key for column in columns], asked)
    # The most columns that fit: each step leaves out one more.
    for count in range(len(expendable) + 1):
        kept = [column for column in columns if column.key not in expendable[:count]]
        for narrow in (False, True):
            heads = [measure_text(column.write_head(narrow)) for column in kept]
            widths = (max(column.least, head) for column, head in zip(kept, heads, strict=True))
            least = sum(widths) + GAPS[narrow] * (len(kept) - 1)
            if least <= room:
                return _draw(kept, room, narrow), expendable[:count]
    return _draw(kept, least, narrow), expendable


def _draw(columns: Sequence[Column], width: int, narrow: bool) -> list[str]:
    if columns and len(columns[0].cells) > LONG:
        return _draw_plain(columns)
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=narrow, header_style=""
    )
    heads = [column.write_head(narrow) for column in columns]
    widths = [
        max(column.least, measure_text(head)) for column, head in zip(columns, heads, strict=True)
    ]
    # Prose takes the room that is left, what lacks least first. rich would give two such columns
    # more, and cut the last.
    spare = width - sum(widths) - GAPS[narrow] * (len(columns) - 1)
    for n in sorted(range(len(columns)), key=lambda n: columns[n].width - widths[n]):
        taken = max(0, min(columns[n].width - widths[n], spare))
        spare -= taken
        widths[n] += taken
    for column, head, size in zip(columns, heads, widths, strict=True):
        table.add_column(
            Text(head),
            justify="right" if column.is_right else "left",
            width=size,
            no_wrap=column.width <= column.least,
            overflow="fold",
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    # Rendered to text and not printed, so that control characters are escaped first.
    console = Console(file=StringIO(), width=width, color_system=None)
    lines = console.render_lines(table, pad=False)
    texts = ("".join(segment.text for segment in line) for line in lines)
    return [f"{MARGIN}{text}".rstrip() for text in texts]


def _draw_plain(columns: Sequence[Column]) -> list[str]:
    """Return the lines of a table whose cells have one line each, aligned to the left."""
    heads = [f"{column.key} {column.unit}".replace("\n", ", ").rstrip() for column in columns]
    widths = [max(len(head), column.width) for head, column in zip(heads, columns, strict=True)]
    rows = [heads, *zip(*(column.cells for column in columns), strict=True)]
    texts = ("  ".join(map(str.ljust, row, widths)) for row in rows)
    return [text.rstrip() for text in texts]


def _order_expendable(keys: Sequence[str], asked: Sequence[str]) -> list[str]:
    """List the columns that can be left out, the least important first."""
    # Whatever it is, the first column says what a line is about.
    others = [key for key in reversed(keys[1:]) if key not in (*NEVER, *asked)]
    first = [key for key in EXPENDABLE if key in others]
    last = [key for key in others if key in PARAMETERS]
    last.sort(key="batch".__eq__)
    return [*first, *(key for key in others if key not in (*first, *last)), *last]


def _measure_width() -> int | None:
    """Return the width of a line [characters], from COLUMNS or the terminal; None for a pipe."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def _wrap(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text] if text else []
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


# Rows of a table without --all: with header and message they fill a small terminal.
SCREENFUL = 20


def show(rows: "pd.DataFrame | Sequence[Row]", form: Format) -> None:
    """Print rows."""
    records = rows if isinstance(rows, Sequence) else rows.to_dict("records")
    plain = [{str(key): value for key, value in row.items()} for row in records]
    show_sections(plain, plain, form, lambda: print_table(plain, complete="csv"))


def show_one(row: Row, form: Format) -> None:
    """Print one record; as a table it has one line per key."""
    show_sections(row, [row], form, lambda: print_record(row))


def show_sections(
    answer: object, rows: Sequence[Row], form: Format, print_sections: Callable[[], None]
) -> None:
    """Print an answer in several sections; JSON has all of it, CSV only `rows`."""
    if form == "json":
        print_json(answer)
    elif form == "csv":
        print_csv(rows)
    else:
        print_sections()


def show_rows(
    rows: Sequence[R],
    form: Format,
    every: bool = False,
    describe: Callable[[R], Row] = dict,
    left_out: int = 0,
    asked: Sequence[str] = (),
) -> None:
    """Print rows; a table shows a screenful unless `every`, and stderr counts the rest.

    describe: makes the table line of a row. left_out: rows that the caller left out already.
    asked: see `print_table`.
    """
    if form != "table" or not rows:
        show(rows, form)
        return
    shown = rows if every else rows[:SCREENFUL]
    print_table([describe(row) for row in shown], asked=asked)
    tell_more(len(rows) - len(shown) + left_out)


def tell_more(count: int, noun: str = "row") -> None:
    """Say on stderr how many rows the table leaves out, if any. noun: what a row is."""
    if count:
        tell(f"paradl: {format_count(count, f'more {noun}')}: --all")


def shorten_label(label: str) -> str:
    """Drop `=best` settings from a strategy's label: other columns show what was chosen."""
    if label in NAMES:
        return NAMES[label]
    base, _, settings = label.partition(":")
    # `best` was a request: the value that it chose is in a column.
    kept = [text for text in settings.split(",") if text and not text.endswith("=best")]
    return f"{base}:{','.join(kept)}" if kept else base
