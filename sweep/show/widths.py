"""Columns that fit a terminal: heads break, prose wraps, the least important columns go, all named.

No text is ever shortened: what a table has no room for is left out as a whole column.
"""

from collections.abc import Iterator, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS
from sweep.show.columns import PROSE, Column, measure_text

RULES = {"─": SIMPLE_HEAD, "-": Box(str(SIMPLE_HEAD).replace("─", "-"), ascii=True)}
MARGIN = " "
WIDEST = 10_000  # characters: a pipe has no width

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
    console = Console(file=StringIO(), width=WIDEST, color_system=None)
    room = WIDEST if width is None else width - len(MARGIN)
    for rest, left_out in _leave_out(columns):
        for narrow in (False, True):
            table = _make_table(rest, narrow, rule)
            least, most = Measurement.get(console, console.options, table)
            if least <= room:
                return _render(console, table, min(most, room)), left_out
    return _render(console, table, least), left_out


def _make_table(columns: Sequence[Column], narrow: bool, rule: str) -> Table:
    # Three blanks between two columns, or two.
    table = Table(
        box=RULES[rule],
        show_edge=False,
        pad_edge=False,
        collapse_padding=narrow,
        header_style="",
    )
    for each in columns:
        head = each.write_head(narrow)
        # Without it, rich cuts columns that do not wrap down to their longest word.
        least = max(measure_text(head), PROSE if each.is_prose else each.width)
        table.add_column(
            Text(head),
            justify="right" if each.is_right else "left",
            no_wrap=not each.is_prose,
            min_width=least or None,
            overflow="fold",
        )
    for cells in zip(*(each.cells for each in columns), strict=True):
        table.add_row(*map(Text, cells))
    return table


def _render(console: Console, table: Table, width: int) -> list[str]:
    """The lines of a table of this width."""
    options = console.options.update(width=width)
    lines = console.render_lines(table, options, pad=False)
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
