"""A difference of two cubes as people read it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from sweep.show.tables import Format, print_table, show_sections
from sweep.show.visible import escape_invisible


def show_difference(difference: Mapping[str, Any], form: Format) -> None:
    """Print what differs: of CSV the answers alone, a variable a line."""
    show_sections(difference, difference["answers"], form, partial(_print, difference))


def _print(difference: Mapping[str, Any]) -> None:
    """Print a sentence, and tables of what differs."""
    print(_summarise(difference))
    for name, title in (
        ("inputs", "inputs that differ"),
        ("versions", "versions that differ"),
        ("axes", "axes that differ"),
    ):
        if difference[name]:
            print_table(difference[name], title)
    changed = [row for row in difference["answers"] if _has_changed(row)]
    if changed:
        rows = [{**row, "where": _join_labels(row["where"])} for row in changed]
        print_table(rows, "answers that changed, in cells (ratios: second / first)")
    if difference["winners"]:
        print_table(difference["winners"], "winners that changed")


def _summarise(difference: Mapping[str, Any]) -> str:
    """A sentence."""
    compared, cells = difference["compared"], difference["cells"]
    of = f"{compared:,} cells" if compared == cells else f"{compared:,} of {cells:,} shared cells"
    if difference["same"]:
        return f"the same answers in {of}"
    changed = sum(map(_has_changed, difference["answers"]))
    flips = difference["feasibility"] or {"became_feasible": 0, "became_infeasible": 0}
    only = [*difference["variables"]["only_first"], *difference["variables"]["only_second"]]
    return (
        f"{changed} of {len(difference['answers'])} variables changed in {of}; "
        f"{flips['became_feasible']:,} cells became feasible, "
        f"{flips['became_infeasible']:,} infeasible"
        + (f"; only one cube has {escape_invisible(', '.join(only))}" if only else "")
    )


def _has_changed(row: Mapping[str, Any]) -> bool:
    return bool(row["changed"] or row["only_first"] or row["only_second"])


def _join_labels(where: Mapping[str, Any] | None) -> str | None:
    """A cell in a line, by the values along its axes."""
    return ", ".join(f"{dim}={value}" for dim, value in where.items()) if where else None
