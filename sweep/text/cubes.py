"""Text about cubes: a verification with its damaged files, and the differences of two cubes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from paradl.grids.reading.errors import format_count
from paradl.sweep.cube.plan import DONE
from paradl.sweep.text.columns import format_cell, format_coordinate
from paradl.sweep.text.data import Format, Row
from paradl.sweep.text.tables import print_record, print_table, show_sections
from paradl.sweep.text.visible import escape_invisible


def show_verified(verified: dict[str, Any], form: Format) -> None:
    """Print the answer of `status --verify`; CSV lists only the damaged files."""
    show_sections(verified, verified["damaged"], form, partial(_print_verified, verified))


def _print_verified(verified: dict[str, Any]) -> None:
    hidden = ("damaged", "left")  # listed below, or stated in the message
    print_record({key: value for key, value in verified.items() if key not in hidden})
    for row in verified["damaged"]:
        cells = ", ".join(f"{dim} {_format_span(span)}" for dim, span in row["cells"].items())
        where = f"; {row['variable']} of {cells}" if cells else ""
        print(escape_invisible(f"{row['file']}: {row['what']}{where}"))


def _format_span(span: Row) -> str:
    ends = [format_cell(span[key]) for key in ("first", "last")]
    return ends[0] if span["count"] == 1 else f"{' ... '.join(ends)} ({span['count']:,})"


def advise_on_damage(verified: dict[str, Any]) -> str:
    """Count the damaged files, and say what was done about them or what to do."""
    # A damaged done-mark or index belongs to no block.
    blocks = len({row["block"] for row in verified["damaged"] if row["block"] is not None})
    counts = (len(verified["damaged"]), "damaged file"), (blocks, "block")
    what = ", ".join(format_count(count, noun) for count, noun in counts if count)
    if verified["left"]:
        return f"{what}; done-marks left unchanged: {verified['left']}"
    advice = f"rerun the same paradl sweep to recompute {'these' if blocks else 'their'} blocks"
    marks = any(row["variable"] == DONE for row in verified["damaged"])
    return f"{what}; {advice if blocks or marks else 'they were rewritten'}"


def show_difference(difference: Mapping[str, Any], form: Format) -> None:
    """Print the answer of `diff`; CSV has one line per variable."""
    show_sections(difference, difference["answers"], form, partial(_print_difference, difference))


def _print_difference(difference: Mapping[str, Any]) -> None:
    changed = [
        {**row, "where": ", ".join(f"{dim}={value}" for dim, value in (row["where"] or {}).items())}
        for row in difference["answers"]
        if row["changed"] or row["only_first"] or row["only_second"]
    ]
    axes = [_write_axis_row(row) for row in difference["axes"]]
    print(_summarise(difference, len(changed)))
    for rows, title in (
        (difference["inputs"], "inputs that differ"),
        (difference["versions"], "versions that differ"),
        (axes, "axes that differ"),
        (changed, "answers that changed, in cells (ratios: second / first)"),
        (difference["winners"], "winners that changed"),
    ):
        if rows:
            print_table(rows, title)


def _write_axis_row(row: Row) -> Row:
    """Write the values that only one cube has."""
    only = {
        key: ", ".join(format_coordinate(row["axis"], value) for value in row[key])
        for key in ("only_first", "only_second")
    }
    return {**row, **only}


def _summarise(difference: Mapping[str, Any], changed: int) -> str:
    """Sum up the differences in a sentence. changed: how many variables differ."""
    compared, cells = difference["compared"], difference["cells"]
    where = (
        f"{compared:,} of {format_count(cells, 'shared cell')}"
        if compared < cells
        else format_count(cells, "cell")
    )
    if difference["same"]:
        return f"the same answers in {where}"
    flips = difference["feasibility"] or {"became_feasible": 0, "became_infeasible": 0}
    only = [*difference["variables"]["only_first"], *difference["variables"]["only_second"]]
    return (
        f"{changed} of {len(difference['answers'])} variables changed in {where}; "
        f"{format_count(flips['became_feasible'], 'cell')} became feasible, "
        f"{flips['became_infeasible']:,} infeasible"
        + (f"; only one cube has {escape_invisible(', '.join(only))}" if only else "")
    )
