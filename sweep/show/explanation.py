"""An explanation as text: for people three tables; as CSV its layers; as JSON all of it."""

from typing import Any

from kernels.flags import FORBIDS
from sweep.cube.variables import name_limits
from sweep.show.tables import Format, Row, print_json, print_record, print_table, show

TOP = (
    *("model", "dataset", "system", "strategy", "pe", "replicas", "group", "segments"),
    *("batch", "global_batch"),
)
SUMS = (
    *("epoch_time", "comp_time", "comm_time", "epochs", "train_time"),
    *("memory", "memory_parts", "largest_batch"),
    *(
        "smallest_group",
        "iterations",
        "feasible",
        "limit",
        "oracle",
        "precision",
        "times",
        "calibration",
    ),
)


def show_explanation(explanation: dict[str, Any], form: Format) -> None:
    """Print what `explain` answers."""
    if form == "json":
        print_json(explanation)
        return
    if form == "csv":
        show(explanation["layers"], "csv")
        return
    if explanation["sentence"]:
        print(explanation["sentence"], end="\n\n")
    print_record({key: explanation[key] for key in (*TOP, *SUMS) if key in explanation})
    print_record(explanation["parameters"], "Parameters")
    if explanation["formulas"]:
        terms = [_lay_out_formula(row) for row in explanation["formulas"]]
        print_table(terms, "Terms (the numbers: one iteration)")
        hidden = [_lay_out_formula(row) for row in explanation["hidden"]]
        if hidden:
            print_table(hidden, "Beside the terms: no part of the time")
        print_table(_drop_empty_columns(explanation["layers"]), "Layers (one sample)")


def describe_obstacle(answer: Row) -> str:
    """What forbids a configuration; marks, which forbid nothing, are left out."""
    forbidding = [name for name in answer["limit"] if name in name_limits(FORBIDS)]
    told = f"this configuration is not feasible: {', '.join(forbidding)}"
    return "; ".join([told, *(_list_ways_out(answer) if "memory" in forbidding else [])])


def _list_ways_out(answer: Row) -> list[str]:
    """What would fit in memory: fewer samples, or a larger group."""
    batch, group = answer["largest_batch"], answer["smallest_group"]
    batches = {None: None, 0: "not one sample fits"}
    groups = {None: None, 0: "no group fits"}
    ways = (
        batches.get(batch, f"a replica holds {batch} samples at most"),
        groups.get(group, f"the smallest group that fits has {group} PEs"),
    )
    return [way for way in ways if way is not None]


def _lay_out_formula(row: dict[str, Any]) -> dict[str, Any]:
    """A line for a term: its formula in symbols, and below it with numbers."""
    return {
        "term": row["term"],
        "formula": (row["formula"], f"= {row['numbers']}"),
        "seconds_per_iteration": row["seconds_per_iteration"],
        "seconds_per_epoch": row["seconds_per_epoch"],
        "part": f"{row['part']:.1%}",
    }


def _drop_empty_columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Layers without the columns that are zero throughout."""
    empty = [key for key in rows[0] if all(row[key] in (0, False) for row in rows)]
    return [{key: value for key, value in row.items() if key not in empty} for row in rows]
