"""Compare: predictions and measured runs side by side, accuracy, and which runs stand out.

accuracy = 1 - |predicted - measured| / measured, at least 0, as in Kahira et al. (HPDC 2021),
section 5. It is stated for total, compute and communication, since errors can cancel in the total.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import cast

from paradl.grids.notes import list_warnings
from paradl.sweep.answers.mapping import AnswerMapping, Row
from paradl.sweep.answers.types.runs import Anomaly, Comparison
from paradl.sweep.measured.launched_runs import LaunchedRuns
from paradl.sweep.measured.predicted_runs import Conditions, PredictedRun, predict_runs
from paradl.sweep.measured.runs import PARTS, RunTimes, read_runs

QUANTILES = ("p10", "p50", "p90")
RATED = (*PARTS, "memory")
# Ends of the names of columns about the intervals of parts.
ENDS = {"total": "", "comp": "_comp", "comm": "_comm"}


def compare(
    path: str | Path,
    *,
    system: str | None = None,
    calibration: str = "auto",
    settings: Mapping[str, object] = {},
    launch: str | None = None,
) -> AnswerMapping[Comparison]:
    """Return predictions [s per iteration] beside the runs of a CSV file, as `paradl compare` does.

    {"rows": one per row of the file; "summary": average accuracies; "notes": on networks and
    machines}. system: of rows that name none. calibration, settings: as for `Configuration`.
    launch: the launch script of a log, or of a folder's, which states what logs do not. InputError:
    a mistake in the file, with its line.

    >>> import paradl
    >>> import pandas as pd
    >>> run = {"model": "resnet50", "dataset": "imagenet", "strategy": "data", "p": 8}
    >>> run |= {"samples_per_replica": 32, "total_s": 0.121}
    >>> pd.DataFrame([run]).to_csv("runs.csv", index=False)
    >>> row, *_ = paradl.compare("runs.csv", system="abci")["rows"]
    >>> round(row["predicted_total"], 3), row["within"]
    (0.125, True)
    """
    script = LaunchedRuns.from_script(launch, system) if launch else LaunchedRuns(system)
    rows_read = read_runs(Path(path), script.values, launch or "")
    conditions = Conditions(script.system, calibration, {**script.settings, **settings})
    runs = predict_runs(rows_read, replace(conditions, models=script.models))
    from paradl.sweep.measured.anomalies import find_anomalies  # late: it imports JAX

    rows = [*map(_make_row, runs, find_anomalies(runs))]
    # Each network and machine warns once, however many rows have it. Repeated runs share a grid,
    # whose warnings take 0.7 ms.
    grids = {id(run.grid): run.grid for run in runs}.values()
    notes = dict.fromkeys(note for grid in grids for note in list_warnings(grid))
    told = [*script.notes, *notes]
    answer = {"rows": rows, "summary": summarise_accuracy(rows), "notes": told}
    return AnswerMapping(cast(Comparison, answer))


def _make_row(run: PredictedRun, anomaly: Anomaly | None) -> Row:
    row, predicted, reason, mfu = run.row, run.predicted, None, run.answer["mfu"]
    lasted = row.measured.total
    if predicted.total is None:
        limits = ", ".join(run.answer["limit"])
        reason = run.grid.misfit(0, 0) or f"no such configuration: {limits}"
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
        "measured_mfu": mfu * predicted.total / lasted
        if mfu and predicted.total and lasted
        else None,
        "predicted_mfu": mfu,
        "measured_memory": row.memory,
        "predicted_memory": run.answer["memory"],
        "accuracy_memory": rate_prediction(run.answer["memory"], row.memory),
        "measured_bytes": dict(row.sent) or None,
        "predicted_bytes": (row.sent and run.predict_bytes()) or None,
        "fits": run.answer["fits"],
        **_name_columns("authors", row.authors),
        **_rate_predictions("authors_accuracy", row.authors, row.measured),
        **_locate_in_intervals(run),
        "feasible": run.answer["feasible"],
        "limit": run.answer["limit"],
        "reason": reason,
        "fitted": run.was_fitted,
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


def _locate_in_intervals(run: PredictedRun) -> Row:
    """Return p10, p50, p90 of each part, and whether its measured time is between p10 and p90."""
    columns: Row = {}
    for part, end in ENDS.items():
        interval = run.intervals[part] if run.intervals else dict.fromkeys(QUANTILES)
        low, high, measured = interval["p10"], interval["p90"], getattr(run.row.measured, part)
        # Without a measurement or an interval, the answer is neither inside nor outside.
        complete = None not in (low, high, measured)
        columns |= {f"{name}{end}": interval[name] for name in QUANTILES}
        columns[f"within{end}"] = low <= measured <= high if complete else None
    return columns


def rate_prediction(predicted: float | None, measured: float | None) -> float | None:
    """Return the accuracy of a prediction; None if either value is unknown.

    1 is exact; 0 is off by the measured value or more.
    """
    # A single PE communicates for 0 s, which has no relative error.
    if predicted is None or not measured:
        return None
    return max(0.0, 1 - abs(predicted - measured) / measured)


def summarise_accuracy(rows: Sequence[Row]) -> Row:
    """Return average accuracies of all rows, of each strategy and of each model.

    `strategies_mean` averages the strategies' means, so that each counts once however many rows it
    has. It leaves out serial runs, as Kahira et al. (HPDC 2021) do for their 86.74 %.
    """
    by_strategy = _average_by("strategy", rows)
    parallel = [averages for name, averages in by_strategy.items() if name != "serial"]
    return {
        "overall": average_rows(rows),
        "strategies_mean": {
            part: _average_known(averages[part]["mean"] for averages in parallel) for part in PARTS
        },
        "by_strategy": by_strategy,
        "by_model": _average_by("model", rows),
    }


def _average_by(key: str, rows: Sequence[Row]) -> Row:
    names = dict.fromkeys(row[key] for row in rows)
    return {name: average_rows([row for row in rows if row[key] == name]) for name in names}


def average_rows(rows: Sequence[Row]) -> Row:
    """Return mean and median of each part over the rows that have both values.

    `n` counts all rows, `unpredicted` those without a prediction. `authors` averages the
    predictions that came with the rows, and ours of the same rows. `coverage` is the share of
    measured times within their 80 % intervals.
    """
    return {
        "n": len(rows),
        "unpredicted": sum(row["predicted_total"] is None for row in rows),
        **{part: _average_values(row[f"accuracy_{part}"] for row in rows) for part in RATED},
        "authors": {part: _average_authors(part, rows) for part in PARTS},
        "coverage": {
            part: _average_known(row[f"within{end}"] for row in rows) for part, end in ENDS.items()
        },
    }


def _average_values(values: Iterable[float | None]) -> dict[str, float | int | None]:
    numbers = [value for value in values if value is not None]
    return {
        "n": len(numbers),
        "mean": fmean(numbers) if numbers else None,
        "median": median(numbers) if numbers else None,
    }


def _average_known(values: Iterable[float | None]) -> float | None:
    return _average_values(values)["mean"]


def _average_authors(part: str, rows: Sequence[Row]) -> dict[str, float | int | None]:
    """Return the authors' accuracies, and `ours` on the rows that they predicted."""
    # Rows that came without a prediction of their authors compare nothing.
    theirs = [row for row in rows if row[f"authors_accuracy_{part}"] is not None]
    return {
        **_average_values(row[f"authors_accuracy_{part}"] for row in theirs),
        "ours": _average_known(row[f"accuracy_{part}"] for row in theirs),
    }
