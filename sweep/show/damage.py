"""A verified cube as text: how much of it is done, and a line for each damaged file."""

from functools import partial
from typing import Any

from sweep.cube.layout import DONE
from sweep.show.columns import format_cell
from sweep.show.tables import Format, Row, print_record, show_sections
from sweep.show.visible import escape_invisible


def show_verified(verified: dict[str, Any], form: Format) -> None:
    """Print a verified status; CSV is of the damaged files alone."""
    show_sections(verified, verified["damaged"], form, partial(_print, verified))


def _print(verified: dict[str, Any]) -> None:
    """Print the status, and a line for each damaged file."""
    hidden = ("damaged", "left")
    print_record({key: value for key, value in verified.items() if key not in hidden})
    for each in verified["damaged"]:
        print(escape_invisible(_format_damage(each)))


def advise_on_damage(verified: dict[str, Any]) -> str:
    """The fate of the damaged files, and advice."""
    blocks = len({each["block"] for each in verified["damaged"] if each["block"] is not None})
    what = f"{len(verified['damaged'])} damaged files, {blocks} blocks"
    if verified["left"]:
        return f"{what}; the marks were not changed: {verified['left']}"
    advice = "run the same paradl sweep again to compute these blocks anew"
    marks = any(each["variable"] == DONE for each in verified["damaged"])
    return f"{what}; {advice if blocks or marks else 'they were written anew'}"


def _format_damage(row: Row) -> str:
    cells = ", ".join(f"{dim} {_format_span(span)}" for dim, span in row["cells"].items())
    return f"{row['file']}: {row['what']}" + (f"; {row['variable']} of {cells}" if cells else "")


def _format_span(span: Row) -> str:
    ends = [format_cell(span[key]) for key in ("first", "last")]
    return ends[0] if span["count"] == 1 else f"{' ... '.join(ends)} ({span['count']:,})"
