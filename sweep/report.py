"""What the command line says in its own words: a sweep's plan, an explanation, the catalogue."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from grids.grid import Grid
from sweep.plan import Plan
from sweep.progress import Advance, Progress
from sweep.resources import needed_memory
from sweep.tables import Format, Row, prefixed, print_record, print_table, show

TOP = ("model", "dataset", "system", "strategy", "pe", "replicas", "group", "batch", "global_batch")
SUMS = ("epoch_time", "comp_time", "comm_time", "memory", "iterations", "feasible", "limit")


def outline(grid: Grid, plan: Plan, workers: int) -> str:
    """The plan: what will be computed, and what it takes."""
    sizes = " x ".join(f"{size} {dim}" for dim, size in zip(plan.dims, plan.shape, strict=True))
    pairs = len(grid.models) * len(grid.datasets)
    fitting = len(grid.fitting)
    idle = f" ({pairs - fitting} of {pairs} model-dataset pairs do not fit and cost nothing)"
    return "\n".join(
        [
            f"{grid.spec.name}: {sizes}",
            f"  cells   {plan.cells:,}{idle if fitting < pairs else ''}",
            f"  bytes   {prefixed(plan.nbytes, 'B')} before compression",
            f"  blocks  {plan.blocks:,} of {' x '.join(map(str, plan.shard))} cells",
            f"  memory  {prefixed(needed_memory(plan, workers), 'B')} for {workers} "
            f"worker{'s' if workers > 1 else ''}",
        ]
    )


def announced(grid: Grid, workers: int, shown: Progress) -> Progress:
    """Progress that starts with the plan, and with what is odd about model files."""

    @contextmanager
    def progress(plan: Plan, done: int) -> Iterator[Advance]:
        print(outline(grid, plan, workers), file=sys.stderr)
        for warning in grid.warnings:
            print(f"paradl: warning: {warning}", file=sys.stderr)
        if done:
            print(f"resumed: {done:,} of {plan.blocks:,} blocks were done", file=sys.stderr)
        with shown(plan, done) as advance:
            yield advance

    return progress


def show_explanation(found: dict[str, Any], form: Format) -> None:
    """An explanation: JSON whole, CSV its layers, and for people three tables."""
    if form == "json":
        print(json.dumps(found, indent=2))
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
        written["levels"] = "\n".join(map(_level, written["levels"]))
    return written


def _level(level: Row) -> str:
    latency, bandwidth = prefixed(level["latency"], "s"), prefixed(level["bandwidth"], "B/s")
    return f"{level['name']}, {level['pes']} PEs: {latency}, {bandwidth}"


def _formula(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "term": row["term"],
        "formula": f"{row['formula']}\n= {row['numbers']}",
        "seconds_per_iteration": row["seconds_per_iteration"],
        "seconds_per_epoch": row["seconds_per_epoch"],
        "part": f"{row['part']:.1%}",
    }


def _columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Layers without the columns that are zero throughout."""
    empty = [key for key in rows[0] if all(row[key] in (0, False) for row in rows)]
    return [{key: value for key, value in row.items() if key not in empty} for row in rows]
