"""Text about cubes: a verification with its damaged files, and the differences of two cubes."""

from collections.abc import Sequence
from functools import partial

from paradl.grids.reading.errors import format_count
from paradl.sweep.answers.types.cubes import ChangedAxis, Difference, Status, ValueSpan
from paradl.sweep.cube.plan import DONE
from paradl.sweep.text.columns import format_cell, format_coordinate
from paradl.sweep.text.data import Format, Row
from paradl.sweep.text.tables import print_record, print_table, show_sections
from paradl.sweep.text.visible import escape_invisible


def show_verified(verified: Status, form: Format) -> None:
    """Print the answer of `status --verify`; CSV lists only the damaged files."""
    show_sections(verified, verified["damaged"], form, partial(_print_verified, verified))


def _print_verified(verified: Status) -> None:
    hidden = ("damaged", "left")  # listed below, or stated in the message
    print_record({key: value for key, value in verified.items() if key not in hidden})
    for row in verified["damaged"]:
        cells = ", ".join(f"{dim} {_format_span(span)}" for dim, span in row["cells"].items())
        where = f"; {row['variable']} of {cells}" if cells else ""
        print(escape_invisible(f"{row['file']}: {row['what']}{where}"))


def _format_span(span: ValueSpan) -> str:
    ends = [format_cell(end) for end in (span["first"], span["last"])]
    return ends[0] if span["count"] == 1 else f"{' ... '.join(ends)} ({span['count']:,})"


def advise_on_damage(verified: Status) -> str:
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


def show_difference(difference: Difference, form: Format) -> None:
    """Print the answer of `diff`; CSV has one line per variable."""
    show_sections(difference, difference["answers"], form, partial(_print_difference, difference))


def _print_difference(difference: Difference) -> None:
    changed = [
        {**row, "where": ", ".join(f"{dim}={value}" for dim, value in (row["where"] or {}).items())}
        for row in difference["answers"]
        if row["changed"] or row["only_first"] or row["only_second"]
    ]
    print(_summarise(difference, len(changed)))
    tables: dict[str, Sequence[Row]] = {
        "inputs that differ": difference["inputs"],
        "versions that differ": difference["versions"],
        "axes that differ": [_write_axis_row(row) for row in difference["axes"]],
        "answers that changed, in cells (ratios: second / first)": changed,
        "winners that changed": difference["winners"],
    }
    for title, rows in tables.items():
        if rows:
            print_table(rows, title)


def _write_axis_row(row: ChangedAxis) -> Row:
    """Write the values that only one cube has."""
    first, second = (
        ", ".join(format_coordinate(row["axis"], value) for value in values)
        for values in (row["only_first"], row["only_second"])
    )
    return {**row, "only_first": first, "only_second": second}


def _summarise(difference: Difference, changed: int) -> str:
    """Sum up the differences in a sentence. changed: how many variables differ."""
    compared, cells = difference["compared"], difference["cells"]
    where = format_count(cells, "cell")
    if compared < cells:
        where = f"{compared:,} of {format_count(cells, 'shared cell')}"
    if difference["same"]:
        return f"the same answers in {where}"
    flips = difference["feasibility"]
    gained, lost = (flips["became_feasible"], flips["became_infeasible"]) if flips else (0, 0)
    only = [*difference["variables"]["only_first"], *difference["variables"]["only_second"]]
    return (
        f"{changed} of {len(difference['answers'])} variables changed in {where}; "
        f"{format_count(gained, 'cell')} became feasible, {lost:,} infeasible"
        + (f"; only one cube has {escape_invisible(', '.join(only))}" if only else "")
    )
