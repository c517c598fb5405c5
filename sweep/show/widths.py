"""Columns that fit a terminal: heads break, prose wraps, the least important columns go, all named.

No text is ever shortened: what a table has no room for is left out as a whole column.
"""

import sys
from collections.abc import Iterator, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from sweep.show.columns import Column, measure_text

RULES = {"─": SIMPLE_HEAD, "-": Box(str(SIMPLE_HEAD).replace("─", "-"), ascii=True)}
MARGIN = " "
GAPS = (3, 2)  # characters between two columns, and in a narrow table
WIDEST = 100_000  # characters, so that rich lays nothing out by itself

# What goes first where a table is too wide, before all others from the right. A verb whose answers
# have such columns adds them here.
EXPENDABLE = (
    *("source", "feasible", "comm_time", "comp_time", "faster_than_next"),
    *("gathered_items", "halo_items", "backward"),
)
# What a row is of: never left out, and after them what was swept or assumed.
NEVER = ("", "rank", *LABELS, "pe", "batch", "p", "b")


def draw_table(
    columns: Sequence[Column], width: int | None, rule: str = "─"
) -> tuple[list[str], list[str]]:
    """The lines of a table of at most `width` characters, and the columns left out; None: of any.

    Tried in turn: as it is or with prose wrapped; narrow, with heads broken; then the same without
    one column more. Labels stay even where they are too wide: the terminal wraps their lines.
    """
    room = sys.maxsize if width is None else width - len(MARGIN)
    for rest, left_out in _leave_out(columns):
        for narrow in (False, True):
            heads = [each.write_head(narrow) for each in rest]
            widths = _share_room(rest, heads, room - GAPS[narrow] * (len(rest) - 1))
            if widths is not None:
                return _draw(rest, heads, widths, rule, narrow), left_out
    return _draw(rest, heads, [*map(_measure_least, rest, heads)], rule, narrow), left_out


def _measure_least(column: Column, head: str) -> int:
    return max(column.least, measure_text(head))


def _share_room(columns: Sequence[Column], heads: Sequence[str], room: int) -> list[int] | None:
    """The widths of columns, the widest prose narrowed as far as it takes; None: they do not fit.

    By hand: rich narrows columns below their least width, and then cuts what lies beyond the room.
    """
    least = [*map(_measure_least, columns, heads)]
    if sum(least) > room:
        return None
    widths = [max(each.width, low) for each, low in zip(columns, least, strict=True)]
    while sum(widths) > room:
        spare = [number for number, each in enumerate(widths) if each > least[number]]
        widths[max(spare, key=widths.__getitem__)] -= 1
    return widths


def _draw(
    columns: Sequence[Column], heads: Sequence[str], widths: Sequence[int], rule: str, narrow: bool
) -> list[str]:
    """The lines of a table whose columns have these widths."""
    table = Table(
        box=RULES[rule],
        show_edge=False,
        pad_edge=False,
        collapse_padding=narrow,
        header_style="",
    )
    for each, head, width in zip(columns, heads, widths, strict=True):
        justify: JustifyMethod = "right" if each.is_right else "left"
        table.add_column(Text(head), justify=justify, width=width, overflow="fold")
    for cells in zip(*(each.cells for each in columns), strict=True):
        table.add_row(*map(Text, cells))
    console = Console(file=StringIO(), width=WIDEST, color_system=None)
    lines = console.render_lines(table, pad=False)
    texts = ("".join(segment.text for segment in line) for line in lines)
    return [f"{MARGIN}{text}".rstrip() for text in texts]


def _leave_out(columns: Sequence[Column]) -> Iterator[tuple[list[Column], list[str]]]:
    """The columns, then one less each time, as long as one can be spared; and what is left out."""
    rest, left_out = list(columns), list[str]()
    yield rest, left_out
    for key in _order_expendable([each.key for each in columns]):
        rest, left_out = [each for each in rest if each.key != key], [*left_out, key]
        yield rest, left_out


def _order_expendable(keys: Sequence[str]) -> list[str]:
    """The columns that can be left out, the least important first."""
    # The first column says what a line is about.
    others = [key for key in reversed(keys[1:]) if key not in NEVER]
    first = [key for key in EXPENDABLE if key in others]
    last = [key for key in others if key in PARAMETERS]
    return [*first, *(key for key in others if key not in (*first, *last)), *last]
