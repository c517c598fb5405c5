"""A comparison as text: for people three tables; as CSV its rows; as JSON all of it."""

from collections.abc import Mapping
from typing import Any

from sweep.measured.runs import PARTS
from sweep.show.tables import Format, Row, cell, print_json, print_table, show

PART_NAMES = {"total": "total", "comp": "compute", "comm": "communication"}


def show_comparison(found: Mapping[str, Any], form: Format) -> None:
    """Print what `compare` found."""
    if form == "json":
        print_json(found)
        return
    if form == "csv":
        show([_record(row) for row in found["rows"]], form)
        return
    uncertain = any(row["p10"] is not None for row in found["rows"])
    lines = [_line(row, uncertain) for row in found["rows"]]
    print_table(lines, "Seconds an iteration, and accuracy")
    print_table(summary_lines(found["summary"]), "Accuracy, mean / median")
    standing_out = [_anomaly(row) for row in found["rows"] if row["anomaly"]]
    if standing_out:
        print_table(standing_out, "Anomalies, and their likely cause")


def _record(row: Row) -> dict[str, Any]:
    """A row whose columns are the same whether it stands out or not."""
    told = row["anomaly"] or {}
    return {**row, "anomaly": told.get("what"), "cause": told.get("cause")}


def _line(row: Row, uncertain: bool) -> dict[str, Any]:
    interval = {"80% interval": _interval(row)} if uncertain else {}
    return {
        "model": row["model"],
        "dataset": row["dataset"],
        "strategy": row["strategy"],
        "p": row["p"],
        "b": row["samples_per_replica"],
        "measured": row["measured_total"],
        "predicted": row["predicted_total"],
        **interval,
        **{PART_NAMES[part]: percent(row[f"accuracy_{part}"]) for part in PARTS},
        "authors": percent(row["authors_accuracy_total"]),
        "remarks": "; ".join(_remarks(row)),
    }


def _interval(row: Row) -> str:
    return "-" if row["p10"] is None else f"{cell(row['p10'])} to {cell(row['p90'])}"


def _remarks(row: Row) -> list[str]:
    said = [name for name in ("anomaly", "extrapolation") if row[name]]
    return said if row["reason"] is None else [*said, row["reason"]]


def _anomaly(row: Row) -> dict[str, Any]:
    told = row["anomaly"]
    return {
        **{key: row[key] for key in ("model", "strategy", "p")},
        "what": (told["what"], told["cause"]),
    }


def summary_lines(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for all rows, for each strategy and for each model."""
    return [
        _averages("all", summary["overall"]),
        *(_averages(name, each) for name, each in summary["by_strategy"].items()),
        *(_averages(name, each) for name, each in summary["by_model"].items()),
    ]


def _averages(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    theirs = found["authors"]["total"]
    return {
        "": name,
        "rows": found["n"],
        **{PART_NAMES[part]: _mean_and_median(found[part]) for part in PARTS},
        "authors' total": _mean_and_median(theirs),
        "on the same rows": percent(theirs["ours"]),
        "in 80% interval": percent(found["coverage"]["total"]),
    }


def _mean_and_median(average: Mapping[str, float | None]) -> str:
    if average["mean"] is None:
        return "-"
    return f"{percent(average['mean'])} / {percent(average['median'])}"


def percent(value: float | None) -> str:
    """As people read it: 0.687 is 68.7%."""
    return "-" if value is None else f"{value:.1%}"
