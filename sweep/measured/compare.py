"""Compare: predictions and measured runs side by side, accuracy, and which runs stand out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweep.measured.accuracy import rate_prediction, summarise_accuracy
from sweep.measured.predicted_runs import Conditions, PredictedRun, predict_runs
from sweep.measured.runs import PARTS, RunTimes, read_runs

QUANTILES = ("p10", "p50", "p90")

Row = dict[str, Any]


def compare(
    path: str | Path,
    *,
    system: str = "abci",
    calibration: str = "auto",
    settings: Mapping[str, object] = {},
) -> dict[str, Any]:
    """Return predictions [s per iteration] beside the runs of a CSV file, as `paradl compare` does.

    {"rows": one per row of the file; "summary": average accuracies; "notes": on networks and
    machines}. system: of rows that name none. calibration, settings: as for `Configuration`.
    InputError: a mistake in the file, with its line.
    """
    runs = predict_runs(read_runs(Path(path)), Conditions(system, calibration, settings))
    from sweep.measured.anomalies import find_anomaly  # late: it imports JAX

    rows = [_make_row(run, find_anomaly(run, runs)) for run in runs]
    # Each network and machine warns once, however many rows have it.
    notes = dict.fromkeys(note for run in runs for note in run.grid.warnings)
    return {"rows": rows, "summary": summarise_accuracy(rows), "notes": list(notes)}


def _make_row(run: PredictedRun, anomaly: Row | None) -> Row:
    row, predicted = run.row, run.predicted
    return {
        "model": row.model,
        "dataset": row.dataset,
        "system": run.answer["system"],
        "strategy": row.strategy,
        "p": row.p,
        "samples_per_replica": row.samples_per_replica,
        "source": row.source,
        "note": row.note,
        **_name_columns("measured", row.measured),
        **_name_columns("predicted", predicted),
        **_rate_predictions("accuracy", predicted, row.measured),
        "measured_memory": row.memory,
        "predicted_memory": run.answer["memory"],
        "accuracy_memory": rate_prediction(run.answer["memory"], row.memory),
        **_name_columns("authors", row.authors),
        **_rate_predictions("authors_accuracy", row.authors, row.measured),
        **_locate_in_interval(run, "total", ""),
        **_locate_in_interval(run, "comp", "_comp"),
        **_locate_in_interval(run, "comm", "_comm"),
        "limit": run.answer["limit"],
        "reason": _explain_absence(run),
        "anomaly": anomaly,
        "extrapolation": run.answer.get("extrapolation", []),
    }


def _name_columns(name: str, times: RunTimes) -> Row:
    return {f"{name}_{part}": getattr(times, part) for part in PARTS}


def _rate_predictions(name: str, predicted: RunTimes, measured: RunTimes) -> Row:
    return {
        f"{name}_{part}": rate_prediction(getattr(predicted, part), getattr(measured, part))
        for part in PARTS
    }


def _locate_in_interval(run: PredictedRun, part: str, suffix: str) -> Row:
    """Return p10, p50, p90, and whether the measured time is between p10 and p90."""
    interval = run.intervals[part] if run.intervals else dict.fromkeys(QUANTILES)
    low, high, measured = interval["p10"], interval["p90"], getattr(run.row.measured, part)
    # Without a measurement or an interval, the answer is neither inside nor outside.
    complete = None not in (low, high, measured)
    return {
        **{f"{name}{suffix}": interval[name] for name in QUANTILES},
        f"within{suffix}": low <= measured <= high if complete else None,
    }


def _explain_absence(run: PredictedRun) -> str | None:
    """Say why there is no prediction; None if there is one."""
    if run.predicted.total is not None:
        return None
    return run.grid.misfit(0, 0) or f"no such configuration: {', '.join(run.answer['limit'])}"
