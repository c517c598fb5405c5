"""Rows of an answer: a screenful of them as a table, all of them as data."""

from collections.abc import Callable, Sequence

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from sweep.answers.types.units import PREFIXED, UNITS
from sweep.show.columns import format_cell
from sweep.show.tables import Format, Row, print_table, show
from sweep.show.visible import escape_invisible, tell

# Rows of a table that are shown unless all are asked for: with head and message a small terminal.
SCREENFUL = 20
# Rows beyond which a table is not drawn: 32,768 of `limits` took 18.9 s to draw, 0.4 s so.
LONG = 300


def show_rows(
    rows: Sequence[Row],
    form: Format,
    every: bool = False,
    describe: Callable[[Row], Row] = dict,
    *,
    above: Sequence[str] | None = LABELS[:3],
    left_out: int = 0,
) -> None:
    """Print rows to stdout; of a table's more than a screenful say on stderr how many.

    describe: the line of a row in a table; columns without any value are dropped. above: labels
    that stand above it where all lines share them, as axes do; None: nothing stands there.
    left_out: rows that are kept back already.
    """
    if form != "table" or not rows:
        show(rows, form)
        return
    lines = drop_empty_columns([describe(row) for row in (rows if every else rows[:SCREENFUL])])
    axes = () if above is None else [key for key in lines[0] if key in PARAMETERS]
    print_headed(*factor_constants(lines, [*(above or ()), *axes]))
    more = len(rows) - len(lines) + left_out
    if more:
        tell(f"paradl: {more:,} more: --all")


def drop_empty_columns(lines: Sequence[Row]) -> list[Row]:
    """The lines without the keys that have no value in any of them."""
    empty = {key for key in lines[0] if all(line.get(key) is None for line in lines)}
    return [{key: each for key, each in line.items() if key not in empty} for line in lines]


def factor_constants(rows: Sequence[Row], keys: Sequence[str]) -> tuple[str, list[Row]]:
    """A line of what all rows share of `keys`, and the rows without it."""
    same = [key for key in keys if len({str(row.get(key)) for row in rows}) == 1]
    texts = [
        str(rows[0][key])
        if key in LABELS
        else f"{key} {format_cell(rows[0][key], PREFIXED.get(key))}"
        for key in same
        if rows[0].get(key) is not None
    ]
    return ", ".join(texts), [
        {key: each for key, each in row.items() if key not in same} for row in rows
    ]


def print_headed(line: str, rows: Sequence[Row]) -> None:
    """Print a table below a line, which may be longer than the table is wide."""
    if line:
        print(escape_invisible(line))
    if len(rows) > LONG:
        print_plain(rows)
    else:
        print_table(rows)


def print_plain(rows: Sequence[Row]) -> None:
    """Print columns as they are, below their heads, with nothing drawn."""
    heads = [f"{key} [{UNITS[key]}]" if key in UNITS else key for key in rows[0]]
    columns = [
        [escape_invisible(format_cell(row[key], PREFIXED.get(key))) for row in rows]
        for key in rows[0]
    ]
    widths = [
        max(len(head), *map(len, column)) for head, column in zip(heads, columns, strict=True)
    ]
    for cells in (heads, *zip(*columns, strict=True)):
        row = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print("  ".join(row).rstrip())
