"""A comparison as text: for people three tables; as CSV its rows; as JSON all of it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from grids.reading.units import format_quantity
from sweep.measured.runs import PARTS
from sweep.show.columns import format_cell
from sweep.show.tables import Format, Row, print_table, show_sections

PART_NAMES = {"total": "total", "comp": "compute", "comm": "communication"}


def show_comparison(comparison: Mapping[str, Any], form: Format) -> None:
    """Print what `compare` answers."""
    rows = [_flatten_row(row) for row in comparison["rows"]]
    show_sections(comparison, rows, form, partial(_print, comparison))


def _print(comparison: Mapping[str, Any]) -> None:
    """Print tables of runs, of averages, and of runs that stand out."""
    uncertain = any(row["p10"] is not None for row in comparison["rows"])
    weighed = any(row["measured_memory"] is not None for row in comparison["rows"])
    lines = [_lay_out_row(row, uncertain, weighed) for row in comparison["rows"]]
    print_table(lines, "Seconds per iteration, and accuracy")
    print_table(list_averages(comparison["summary"]), "Accuracy, mean / median")
    standing_out = [_lay_out_anomaly(row) for row in comparison["rows"] if row["anomaly"]]
    if standing_out:
        print_table(standing_out, "Anomalies, and their likely cause")


def _flatten_row(row: Row) -> dict[str, Any]:
    """A row whose columns are the same whether it stands out or not."""
    anomaly = row["anomaly"] or {}
    return {**row, "anomaly": anomaly.get("what"), "cause": anomaly.get("cause")}


def _lay_out_row(row: Row, uncertain: bool, weighed: bool) -> dict[str, Any]:
    """A line for a run; with columns of intervals, and of memory, where any run has one."""
    interval = {"80% interval": _format_interval(row)} if uncertain else {}
    memory = {"memory": _format_memory(row)} if weighed else {}
    return {
        "model": row["model"],
        "dataset": row["dataset"],
        "strategy": row["strategy"],
        "p": row["p"],
        "b": row["samples_per_replica"],
        "measured": row["measured_total"],
        "predicted": row["predicted_total"],
        **interval,
        **{PART_NAMES[part]: format_percent(row[f"accuracy_{part}"]) for part in PARTS},
        **memory,
        "authors": format_percent(row["authors_accuracy_total"]),
        "remarks": "; ".join(_list_remarks(row)),
    }


def _format_interval(row: Row) -> str:
    return "-" if row["p10"] is None else f"{format_cell(row['p10'])} to {format_cell(row['p90'])}"


def _format_memory(row: Row) -> str:
    """The memory of one PE, measured and predicted."""
    measured, predicted = (row[f"{which}_memory"] for which in ("measured", "predicted"))
    if measured is None:
        return "-"
    expected = "-" if predicted is None else format_quantity(predicted, "B")
    return f"{format_quantity(measured, 'B')}, predicted {expected}"


def _list_remarks(row: Row) -> list[str]:
    """Remarks on a run: that it stands out, or why it has no prediction."""
    remarks = [name for name in ("anomaly", "extrapolation") if row[name]]
    return remarks if row["reason"] is None else [*remarks, row["reason"]]


def _lay_out_anomaly(row: Row) -> dict[str, Any]:
    """A line for a run that stands out: what does, and below it the likely cause."""
    anomaly = row["anomaly"]
    return {
        **{key: row[key] for key in ("model", "strategy", "p")},
        "what": (anomaly["what"], anomaly["cause"]),
    }


def list_averages(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for all rows, for each strategy and for each model."""
    return [
        _lay_out_averages("all", summary["overall"]),
        _lay_out_strategies_mean(summary["strategies_mean"]),
        *(_lay_out_averages(name, each) for name, each in summary["by_strategy"].items()),
        *(_lay_out_averages(name, each) for name, each in summary["by_model"].items()),
    ]


def _lay_out_averages(name: str, averages: Mapping[str, Any]) -> dict[str, Any]:
    """A line of averages; the authors' beside ours of the same rows."""
    theirs = averages["authors"]["total"]
    return {
        "": name,
        "rows": averages["n"],
        **{PART_NAMES[part]: _format_average(averages[part]) for part in PARTS},
        "authors' total": _format_average(theirs),
        "on the same rows": format_percent(theirs["ours"]),
        "in 80% interval": format_percent(averages["coverage"]["total"]),
    }


def _lay_out_strategies_mean(means: Mapping[str, float | None]) -> dict[str, Any]:
    """A line of the strategies' means, each strategy counted once."""
    return {
        "": "mean of strategies",
        **{PART_NAMES[part]: format_percent(means[part]) for part in PARTS},
    }


def _format_average(average: Mapping[str, float | None]) -> str:
    if average["mean"] is None:
        return "-"
    return f"{format_percent(average['mean'])} / {format_percent(average['median'])}"


def format_percent(value: float | None) -> str:
    """A share as people read it: 0.687 is 68.7%."""
    return "-" if value is None else f"{value:.1%}"
