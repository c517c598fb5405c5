"""What the command line says in its own words: an explanation, the catalogue, what is damaged."""

from collections.abc import Sequence
from typing import Any

from grids.reading.units import prefixed
from kernels.flags import FORBIDS
from sweep.cube.layout import DONE
from sweep.cube.variables import name_limits
from sweep.show.tables import (
    Format,
    Row,
    cell,
    print_json,
    print_record,
    print_table,
    show,
)
from sweep.show.visible import visible

TOP = ("model", "dataset", "system", "strategy", "pe", "replicas", "group", "batch", "global_batch")
SUMS = ("epoch_time", "comp_time", "comm_time", "memory", "iterations", "feasible", "limit")


def show_explanation(found: dict[str, Any], form: Format) -> None:
    """An explanation: JSON whole, CSV its layers, and for people three tables."""
    if form == "json":
        print_json(found)
        return
    if form == "csv":
        show(found["layers"], "csv")
        return
    print_record({key: found[key] for key in (*TOP, *SUMS) if key in found})
    print_record(found["parameters"], "Parameters")
    if found["formulas"]:
        print_table(
            [_formula(row) for row in found["formulas"]], "Terms (the numbers: one iteration)"
        )
        print_table(_columns(found["layers"]), "Layers (one sample)")


def obstacle(found: Row) -> str:
    """What forbids a configuration; marks, which forbid nothing, are left out."""
    forbidding = [name for name in found["limit"] if name in name_limits(FORBIDS)]
    return f"this configuration is not feasible: {', '.join(forbidding)}"


def show_entries(rows: Sequence[Row], form: Format) -> None:
    """The catalogue. Sources are for programs: they would make every table too wide to read."""
    if form == "json":
        show(rows, form)
        return
    hidden = {"source"} if form == "table" else set()
    show([_entry(row, hidden) for row in rows], form)


def _entry(row: Row, hidden: set[str]) -> dict[str, Any]:
    written = {key: value for key, value in row.items() if key not in hidden}
    if "levels" in written:
        written["levels"] = tuple(map(_level, written["levels"]))
    return written


def _level(level: Row) -> str:
    latency, bandwidth = prefixed(level["latency"], "s"), prefixed(level["bandwidth"], "B/s")
    return f"{level['name']}, {level['pes']} PEs: {latency}, {bandwidth}"


def _formula(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "term": row["term"],
        "formula": (row["formula"], f"= {row['numbers']}"),
        "seconds_per_iteration": row["seconds_per_iteration"],
        "seconds_per_epoch": row["seconds_per_epoch"],
        "part": f"{row['part']:.1%}",
    }


def _columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Layers without the columns that are zero throughout."""
    empty = [key for key in rows[0] if all(row[key] in (0, False) for row in rows)]
    return [{key: value for key, value in row.items() if key not in empty} for row in rows]


def show_verified(found: dict[str, Any], form: Format) -> None:
    """How much is done, and a line for each damaged file; CSV is of those alone."""
    damaged = found["damaged"]
    if form == "json":
        print_json(found)
    elif form == "csv":
        show(damaged, form)
    else:
        print_record({key: value for key, value in found.items() if key not in ("damaged", "left")})
        for each in damaged:
            print(visible(_damage(each)))


def advice(found: dict[str, Any]) -> str:
    """What became of the damaged files, and what to do."""
    blocks = len({each["block"] for each in found["damaged"] if each["block"] is not None})
    what = f"{len(found['damaged'])} damaged files, {blocks} blocks"
    if found["left"]:
        return f"{what}; the marks were not changed: {found['left']}"
    todo = "run the same paradl sweep again to compute these blocks anew"
    marks = any(each["variable"] == DONE for each in found["damaged"])
    return f"{what}; {todo if blocks or marks else 'they were written anew'}"


def _damage(row: Row) -> str:
    cells = ", ".join(f"{dim} {_span(span)}" for dim, span in row["cells"].items())
    return f"{row['file']}: {row['what']}" + (f"; {row['variable']} of {cells}" if cells else "")


def _span(span: Row) -> str:
    ends = [cell(span[key]) for key in ("first", "last")]
    return ends[0] if span["count"] == 1 else f"{' ... '.join(ends)} ({span['count']:,})"
