"""Printing an answer as `--format` says: rows, one record, or several sections."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from paradl.sweep.show.data import NAMES, Format, Row, print_csv, print_json
from paradl.sweep.show.tables import print_record, print_table
from paradl.sweep.show.visible import tell

if TYPE_CHECKING:
    import pandas as pd

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
    rows: Sequence[Row],
    form: Format,
    every: bool = False,
    describe: Callable[[Row], Row] = dict,
    left_out: int = 0,
) -> None:
    """Print rows; a table shows a screenful unless `every`, and stderr counts the rest.

    describe: makes the table line of a row. left_out: rows that the caller left out already.
    """
    if form != "table" or not rows:
        show(rows, form)
        return
    shown = rows if every else rows[:SCREENFUL]
    print_table([describe(row) for row in shown])
    tell_more(len(rows) - len(shown) + left_out)


def tell_more(count: int) -> None:
    """Say on stderr how many rows the table leaves out, if any."""
    if count:
        tell(f"paradl: {count:,} more: --all")


def shorten_label(label: str) -> str:
    """Drop `=best` settings from a strategy's label: other columns show what was chosen."""
    if label in NAMES:
        return NAMES[label]
    base, _, settings = label.partition(":")
    # `best` was a request: the value that it chose is in a column.
    kept = [text for text in settings.split(",") if text and not text.endswith("=best")]
    return f"{base}:{','.join(kept)}" if kept else base
