"""What `status --verify` tells: how much of a cube is done, and a line for each damaged file."""

from typing import Any

from sweep.cube.layout import DONE
from sweep.show.columns import format_cell
from sweep.show.tables import Format, Row, print_json, print_record, show
from sweep.show.visible import escape_invisible


def show_verified(verified: dict[str, Any], form: Format) -> None:
    """Print a verified status; CSV is of the damaged files alone."""
    damaged = verified["damaged"]
    if form == "json":
        print_json(verified)
    elif form == "csv":
        show(damaged, form)
    else:
        hidden = ("damaged", "left")
        print_record({key: value for key, value in verified.items() if key not in hidden})
        for each in damaged:
            print(escape_invisible(_format_damage(each)))


def advise_on_damage(verified: dict[str, Any]) -> str:
    """What became of the damaged files, and what to do."""
    blocks = len({each["block"] for each in verified["damaged"] if each["block"] is not None})
    what = f"{len(verified['damaged'])} damaged files, {blocks} blocks"
    if verified["left"]:
        return f"{what}; the marks were not changed: {verified['left']}"
    todo = "run the same paradl sweep again to compute these blocks anew"
    marks = any(each["variable"] == DONE for each in verified["damaged"])
    return f"{what}; {todo if blocks or marks else 'they were written anew'}"


def _format_damage(row: Row) -> str:
    cells = ", ".join(f"{dim} {_format_span(span)}" for dim, span in row["cells"].items())
    return f"{row['file']}: {row['what']}" + (f"; {row['variable']} of {cells}" if cells else "")


def _format_span(span: Row) -> str:
    ends = [format_cell(span[key]) for key in ("first", "last")]
    return ends[0] if span["count"] == 1 else f"{' ... '.join(ends)} ({span['count']:,})"
