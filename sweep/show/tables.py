"""Tables that fit their terminal: prose wraps, heads break, columns are left out.

No text is shortened: where room is short, a whole column is left out and named below.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from sweep.show.columns import Column, format_alone, make_column, measure_text
from sweep.show.data import Format, Row, flatten_record, list_columns
from sweep.show.visible import escape_invisible

RULES = {"─": SIMPLE_HEAD, "-": Box(str(SIMPLE_HEAD).replace("─", "-"), ascii=True)}
MARGIN = " "
GAPS = (3, 2)  # characters between two columns, and in a narrow table
WIDEST = 100_000  # characters, where a pipe has no width
# Rows beyond which rich lays out no table: 32,768 of `limits` took 18.9 s, and 0.4 s without it.
LONG = 300

# Columns that are left out first where a table is too wide, before all others from the right.
EXPENDABLE = (
    *("source", "feasible", "comm_time", "comp_time", "faster_than_next"),
    *("gathered_items", "halo_items", "backward"),
)
# Columns that say what a row is about: never left out; parameters that were swept are the last.
NEVER = ("", "rank", *LABELS, "pe", "batch", "p", "b")

RECORD = ("", "value")  # the columns of a record, which stay columns


def print_record(row: Row, title: str = "") -> None:
    """Print one line per key, each value with its unit."""
    flat = flatten_record(row).items()
    print_table([{"": key, "value": format_alone(key, value)} for key, value in flat], title)


def print_table(rows: Sequence[Row], title: str = "", complete: Format = "json") -> None:
    """Print aligned columns under a title.

    A column that has one value in all of several rows stands in a line above; one without any value
    is left out. complete: the format that has the columns which a terminal has no room for.
    """
    columns = {key: make_column(key, rows) for key in list_columns(rows)}
    shared = _find_shared(rows, columns)
    width = _measure_width()
    kept = [column for key, column in columns.items() if key not in shared]
    table, left_out = draw_table(kept, width, _choose_rule())
    if left_out and len(rows) == 1:
        print_record(rows[0], title)  # one line per key has room for all
        return
    constants = ", ".join(filter(None, shared.values()))
    lines = [
        *([title] if title else []),
        *_wrap(constants, width),
        *table,
        *_name_left_out(left_out, complete, width),
    ]
    print("\n".join([*map(escape_invisible, lines), ""]))


def _find_shared(rows: Sequence[Row], columns: Mapping[str, Column]) -> dict[str, str]:
    """The texts of columns that are the same in all rows; of one row those that say which it is."""
    shared = {}
    for key, column in columns.items():
        value = rows[0].get(key)
        # In one row everything is constant: only what says which row it is stands above.
        is_told = len(rows) > 1 or key in LABELS or key in PARAMETERS or value is None
        same = len(set(column.cells)) == 1 and not isinstance(value, tuple)
        if is_told and same and key not in RECORD:
            text = "" if column.cells[0] in ("", "-") else format_alone(key, value)
            shared[key] = text if key in LABELS or not text else f"{key} {text}"
    return shared if len(shared) < len(columns) else {}


def draw_table(
    columns: Sequence[Column], width: int | None, rule: str = "─"
) -> tuple[list[str], list[str]]:
    """The lines of a table of at most `width` characters, and the columns left out; None: of any.

    Tried in turn: prose wrapped; heads broken as well; then the same without one column more.
    Labels stay even where they are too wide.
    """
    room = WIDEST if width is None else width - len(MARGIN)
    for kept, left_out in _leave_out(columns):
        for narrow in (False, True):
            heads = (measure_text(column.write_head(narrow)) for column in kept)
            least = sum(max(column.least, head) for column, head in zip(kept, heads, strict=True))
            if least + GAPS[narrow] * (len(kept) - 1) <= room:
                return _draw(kept, room, rule, narrow), left_out
    return _draw(kept, WIDEST, rule, narrow), left_out


def _draw(columns: Sequence[Column], width: int, rule: str, narrow: bool) -> list[str]:
    """The lines of a table, its prose as narrow as the width has it."""
    if columns and len(columns[0].cells) > LONG:
        return _draw_plain(columns)
    table = Table(
        box=RULES[rule], show_edge=False, pad_edge=False, collapse_padding=narrow, header_style=""
    )
    for column in columns:
        is_prose = column.width > column.least
        table.add_column(
            Text(column.write_head(narrow)),
            justify="right" if column.is_right else "left",
            min_width=column.least,
            no_wrap=not is_prose,  # rich takes missing room from the widest column that may wrap
            overflow="fold",
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    console = Console(file=StringIO(), width=width, color_system=None)
    lines = console.render_lines(table, pad=False)
    texts = ("".join(segment.text for segment in line) for line in lines)
    return [f"{MARGIN}{text}".rstrip() for text in texts]


def _draw_plain(columns: Sequence[Column]) -> list[str]:
    """The lines of a table of single-line cells, each aligned to the left."""
    heads = [f"{column.key} {column.unit}".rstrip() for column in columns]
    widths = [max(len(head), column.width) for head, column in zip(heads, columns, strict=True)]
    rows = [heads, *zip(*(column.cells for column in columns), strict=True)]
    texts = ("  ".join(map(str.ljust, row, widths)) for row in rows)
    return [text.rstrip() for text in texts]


def _leave_out(columns: Sequence[Column]) -> Iterator[tuple[list[Column], list[str]]]:
    """Yield the columns, then ever fewer of them, with the keys left out so far."""
    rest, left_out = list(columns), list[str]()
    yield rest, left_out
    for key in _order_expendable([column.key for column in columns]):
        rest, left_out = [column for column in rest if column.key != key], [*left_out, key]
        yield rest, left_out


def _order_expendable(keys: Sequence[str]) -> list[str]:
    """List the columns that can be left out, the least important first."""
    # The first column stays: it says what a line is about.
    others = [key for key in reversed(keys[1:]) if key not in NEVER]
    first = [key for key in EXPENDABLE if key in others]
    last = [key for key in others if key in PARAMETERS]
    return [*first, *(key for key in others if key not in (*first, *last)), *last]


def _measure_width() -> int | None:
    """Width of a line [characters], from COLUMNS or the terminal; None: a pipe has none."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def _choose_rule() -> str:
    """Choose the character under heads: one that the encoding of stdout has."""
    return "─" if (sys.stdout.encoding or "").lower().startswith("utf") else "-"


def _name_left_out(keys: Sequence[str], complete: Format, width: int | None) -> list[str]:
    """Write lines that name the columns left out, and the format that has them."""
    text = f"left out for width: {', '.join(keys)}; --format {complete} has all"
    return _wrap(text, width) if keys else []


def _wrap(text: str, width: int | None) -> list[str]:
    """The text in lines of at most `width` characters, as far as its words allow."""
    if width is None:
        return [text] if text else []
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
