"""Columns that fit a terminal: heads break, prose wraps, the least important columns go, all named.

No text is ever shortened: what a table has no room for is left out as a whole column.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

from rich.cells import cell_len

from grids.entries.parameters import PARAMETERS
from grids.grid import LABELS

Lines = tuple[str, ...]

GAPS = (3, 2)  # characters between columns, where there is room and where there is not
MARGIN = " "
PROSE = 20  # characters: narrower a text of several words does not become

# What goes first where a table is too wide, before all others from the right. A verb whose answers
# have such columns adds them here.
EXPENDABLE = (
    *("source", "feasible", "comm_time", "comp_time", "faster_than_next"),
    *("gathered_items", "halo_items", "backward"),
)
# What a row is of: never left out, and after them what was swept or assumed.
NEVER = ("", "rank", *LABELS, "pe", "batch", "p", "b")


@dataclass(frozen=True)
class Column:
    """A column: the lines of its head and of each of its cells. is_right: of numbers."""

    key: str
    head: Lines
    cells: tuple[Lines, ...]
    is_right: bool = False

    @cached_property
    def body_width(self) -> int:
        """Characters of the widest cell."""
        return max((cell_len(line) for cell in self.cells for line in cell), default=0)

    @cached_property
    def width(self) -> int:
        """Characters of the widest line."""
        return max(self.body_width, *map(cell_len, self.head))


@dataclass(frozen=True)
class Arrangement:
    """Columns that fit a width, `gap` characters between two, and the keys of those left out."""

    columns: tuple[Column, ...]
    gap: int
    left_out: Lines = ()

    @property
    def width(self) -> int:
        """Characters of a line."""
        between = self.gap * (len(self.columns) - 1)
        return len(MARGIN) + sum(each.width for each in self.columns) + between


def fit_columns(columns: Sequence[Column], width: int | None) -> Arrangement:
    """The columns in lines of at most `width` characters; None: of any.

    Tried in turn: as they are, heads broken, texts wrapped, then the same without one column more.
    Labels stay even where they are too wide: the terminal wraps their lines, and nothing is lost.
    """
    ways: tuple[Callable[[Arrangement, int], Arrangement], ...] = (
        lambda arrangement, _: arrangement,
        lambda arrangement, _: _break_heads(arrangement),
        lambda arrangement, width: _wrap_texts(_break_heads(arrangement), width),
    )
    for rest in _leave_out(Arrangement(tuple(columns), GAPS[0])):
        for way in ways:
            arrangement = way(rest, width or 0)
            if width is None or arrangement.width <= width:
                return arrangement
    return arrangement


def _leave_out(arrangement: Arrangement) -> Iterator[Arrangement]:
    """The arrangement, then with one column less each time, as long as one can be spared."""
    yield arrangement
    for key in _order_expendable([each.key for each in arrangement.columns]):
        rest = tuple(each for each in arrangement.columns if each.key != key)
        arrangement = replace(arrangement, columns=rest, left_out=(*arrangement.left_out, key))
        yield arrangement


def _order_expendable(keys: Sequence[str]) -> list[str]:
    """The columns that can be left out, the least important first."""
    # The first column says what a line is about.
    others = [key for key in reversed(keys[1:]) if key not in NEVER]
    first = [key for key in EXPENDABLE if key in others]
    last = [key for key in others if key in PARAMETERS]
    return [*first, *(key for key in others if key not in (*first, *last)), *last]


def _break_heads(arrangement: Arrangement) -> Arrangement:
    """The columns closer together, their heads broken at underscores where cells are narrower."""
    columns = tuple(map(_break_head, arrangement.columns))
    return replace(arrangement, columns=columns, gap=GAPS[-1])


def _break_head(column: Column) -> Column:
    name, *unit = column.head
    pieces = re.findall(r"[^_ ]*_+|[^_ ]+ ?", name) or [name]
    room = max(column.body_width, *map(cell_len, (*pieces, *unit)))
    return replace(column, head=(*_join_pieces(pieces, room), *unit))


def _join_pieces(pieces: Sequence[str], room: int) -> Lines:
    """Lines of as many pieces as fit; a piece that is too long has a line of its own."""
    lines: list[str] = []
    for piece in pieces:
        if lines and cell_len(lines[-1] + piece.rstrip()) <= room:
            lines[-1] += piece
        else:
            lines.append(piece)
    return tuple(line.rstrip() for line in lines) or ("",)


def _wrap_texts(arrangement: Arrangement, width: int) -> Arrangement:
    """The widest columns of several words wrapped, as far as it takes to fit, and as it is read."""
    columns = list(arrangement.columns)
    least = [_find_least_width(each) for each in columns]
    widths = [each.width for each in columns]
    for _ in range(arrangement.width - width):
        spare = [number for number, each in enumerate(widths) if each > least[number]]
        if not spare:
            break
        widths[max(spare, key=widths.__getitem__)] -= 1
    wrapped = map(_wrap_column, columns, widths)
    return replace(arrangement, columns=tuple(wrapped))


def _find_least_width(column: Column) -> int:
    """How narrow a column may become: numbers and single words stay as wide as they are."""
    words = {word for cell in column.cells for line in cell for word in line.split()}
    longest = max(map(cell_len, words), default=0)
    return min(column.width, max(longest, PROSE, *map(cell_len, column.head)))


def _wrap_column(column: Column, width: int) -> Column:
    if width >= column.width:
        return column
    return replace(column, cells=tuple(_wrap_cell(cell, width) for cell in column.cells))


def _wrap_cell(cell: Lines, width: int) -> Lines:
    """The lines of a cell, each broken between words."""
    return tuple(
        line for text in cell for line in _join_pieces(re.findall(r"\S+\s*", text) or [""], width)
    )


def draw_table(table: Arrangement, rule: str) -> list[str]:
    """The lines of a table: heads, a line of `rule` below them, cells."""
    if not table.columns:
        return []
    height = max(len(each.head) for each in table.columns)
    # Heads end at the same line, above the rule.
    heads = [tuple([""] * (height - len(each.head)) + [*each.head]) for each in table.columns]
    rows = zip(*(each.cells for each in table.columns), strict=True)
    drawn = [line for row in rows for line in _draw_row(table, row)]
    return [*_draw_row(table, heads), MARGIN + rule * (table.width - len(MARGIN)), *drawn]


def _draw_row(table: Arrangement, cells: Sequence[Lines]) -> Iterator[str]:
    """The lines of one row, of which each cell has its own number."""
    for lines in zip_longest(*cells, fillvalue=""):
        padded = map(_pad_text, lines, table.columns)
        yield (MARGIN + (" " * table.gap).join(padded)).rstrip()


def _pad_text(text: str, column: Column) -> str:
    room = " " * (column.width - cell_len(text))
    return room + text if column.is_right else text + room
