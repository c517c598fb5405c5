"""Answers in the format of `--format`: rows, one record, or several sections."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sweep.show.data import Format, Row, print_csv, print_json
from sweep.show.tables import print_record, print_table
from sweep.show.visible import tell

if TYPE_CHECKING:
    import pandas as pd

# Rows of a table without --all: with head and message they fill a small terminal.
SCREENFUL = 20


def show(rows: "pd.DataFrame | Sequence[Row]", form: Format) -> None:
    """Print rows to stdout."""
    records = rows if isinstance(rows, Sequence) else rows.to_dict("records")
    plain = [{str(key): value for key, value in row.items()} for row in records]
    show_sections(plain, plain, form, lambda: print_table(plain, complete="csv"))


def show_one(row: Row, form: Format) -> None:
    """Print one record: for people one line per key."""
    show_sections(row, [row], form, lambda: print_record(row))


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


def show_rows(
    rows: Sequence[Row],
    form: Format,
    every: bool = False,
    describe: Callable[[Row], Row] = dict,
    left_out: int = 0,
) -> None:
    """Print rows to stdout, as a table no more than a screenful; count the others on stderr.

    describe: the line of a row in a table. left_out: rows that were left out before.
    """
    if form != "table" or not rows:
        show(rows, form)
        return
    shown = rows if every else rows[:SCREENFUL]
    print_table([describe(row) for row in shown])
    tell_more(len(rows) - len(shown) + left_out)


def tell_more(count: int) -> None:
    """Say on stderr how many rows a table lacks, if any."""
    if count:
        tell(f"paradl: {count:,} more: --all")


def shorten_label(label: str) -> str:
    """A strategy without what was searched: other columns say what was chosen."""
    base, _, settings = label.partition(":")
    kept = [text for text in settings.split(",") if text and not text.endswith("=best")]
    return f"{base}:{','.join(kept)}" if kept else base
