"""Compare: predictions beside measured runs, how accurate they are, and which runs stand out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweep.measured.accuracy import rate_prediction, summarise_accuracy
from sweep.measured.anomalies import find_anomaly
from sweep.measured.predicted_runs import AS_MEASURED, Conditions, PredictedRun, predict_runs
from sweep.measured.runs import PARTS, Times, read_runs

QUANTILES = ("p10", "p50", "p90")

Row = dict[str, Any]


def compare(
    path: str | Path,
    *,
    system: str = "abci",
    calibration: str | None = None,
    settings: Mapping[str, object] = AS_MEASURED,
) -> dict[str, Any]:
    """Predictions [s an iteration] beside the runs of a CSV file, as `paradl compare` prints them.

    {"rows": one for each row of the file, in its order; "summary": accuracies averaged}. system: of
    rows that name none. calibration: a name, a file or "none"; by default the one that is shipped
    with the row's system. settings: as in `Configuration`. InputError tells file and line.
    """
    runs = read_runs(Path(path))
    found = predict_runs(runs, Conditions(system, calibration, settings))
    rows = [_make_row(case, find_anomaly(case, found)) for case in found]
    return {"rows": rows, "summary": summarise_accuracy(rows)}


def _make_row(case: PredictedRun, standing_out: Row | None) -> Row:
    run, predicted = case.run, case.predicted
    return {
        "model": run.model,
        "dataset": run.dataset,
        "system": case.found["system"],
        "strategy": run.strategy,
        "p": run.p,
        "samples_per_replica": run.samples_per_replica,
        "source": run.source,
        "note": run.note,
        **_list_times("measured", run.measured),
        **_list_times("predicted", predicted),
        **_rate_predictions("accuracy", predicted, run.measured),
        **_list_times("authors", run.authors),
        **_rate_predictions("authors_accuracy", run.authors, run.measured),
        **_locate_in_interval(case, "total", ""),
        **_locate_in_interval(case, "comp", "_comp"),
        **_locate_in_interval(case, "comm", "_comm"),
        "limit": case.found["limit"],
        "reason": _explain_absence(case),
        "anomaly": standing_out,
        "extrapolation": case.found.get("extrapolation", []),
    }


def _list_times(name: str, times: Times) -> Row:
    return {f"{name}_{part}": getattr(times, part) for part in PARTS}


def _rate_predictions(name: str, predicted: Times, measured: Times) -> Row:
    return {
        f"{name}_{part}": rate_prediction(getattr(predicted, part), getattr(measured, part))
        for part in PARTS
    }


def _locate_in_interval(case: PredictedRun, part: str, suffix: str) -> Row:
    """p10, p50, p90 and whether the measured time lies between the outer two."""
    found = case.intervals[part] if case.intervals else dict.fromkeys(QUANTILES)
    low, high, measured = found["p10"], found["p90"], getattr(case.run.measured, part)
    known = None not in (low, high, measured)
    return {
        **{f"{name}{suffix}": found[name] for name in QUANTILES},
        f"within{suffix}": low <= measured <= high if known else None,
    }


def _explain_absence(case: PredictedRun) -> str | None:
    """Why there is no prediction; None where there is one."""
    if case.predicted.total is not None:
        return None
    return case.grid.misfit(0, 0) or f"no such configuration: {', '.join(case.found['limit'])}"
