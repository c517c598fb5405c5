"""What the command line says in prose: the plan of a sweep, an explanation."""

import json
from typing import Any

from grids.grid import Grid
from sweep.plan import Plan
from sweep.resources import needed_memory
from sweep.tables import Format, prefixed, print_table, show

TOP = ("model", "dataset", "system", "strategy", "pe", "replicas", "group", "batch", "global_batch")
SUMS = ("epoch_time", "comp_time", "comm_time", "memory", "iterations", "feasible", "limit")


def outline(grid: Grid, plan: Plan, workers: int) -> str:
    """The plan: what will be computed, and what it takes."""
    sizes = " x ".join(f"{size} {dim}" for dim, size in zip(plan.dims, plan.shape, strict=True))
    pairs = len(grid.models) * len(grid.datasets)
    fitting = sum(
        grid.table(model, dataset) is not None
        for model in range(len(grid.models))
        for dataset in range(len(grid.datasets))
    )
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


def show_explanation(found: dict[str, Any], form: Format) -> None:
    """An explanation: JSON whole, CSV its layers, and for people three tables."""
    if form == "json":
        print(json.dumps(found, indent=2))
        return
    if form == "csv":
        show(found["layers"], "csv")
        return
    summary = {key: found[key] for key in (*TOP, *SUMS) if key in found}
    print_table([{"": key, "value": value} for key, value in _written(summary).items()])
    numbers = _written(found["parameters"]).items()
    print_table([{"parameter": key, "value [SI]": value} for key, value in numbers])
    if found["formulas"]:
        print_table([_formula(row) for row in found["formulas"]], "Terms (the numbers: one iteration)")
        print_table(_columns(found["layers"]), "Layers (one sample)")


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


def _written(record: dict[str, Any]) -> dict[str, Any]:
    return {
        key: ", ".join(value) or "nothing" if isinstance(value, list) else value
        for key, value in record.items()
    }
