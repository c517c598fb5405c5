"""Compare: predictions beside measured runs, how accurate they are, and which runs stand out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweep.measured.accuracy import accuracy, summary
from sweep.measured.anomalies import anomaly
from sweep.measured.predicted_runs import AS_MEASURED, Case, Conditions, cases
from sweep.measured.runs import PARTS, Times, read_measured

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
    runs = read_measured(Path(path))
    found = cases(runs, Conditions(system, calibration, settings))
    rows = [_row(case, anomaly(case, found)) for case in found]
    return {"rows": rows, "summary": summary(rows)}


def _row(case: Case, standing_out: Row | None) -> Row:
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
        **_times("measured", run.measured),
        **_times("predicted", predicted),
        **_accuracies("accuracy", predicted, run.measured),
        **_times("authors", run.authors),
        **_accuracies("authors_accuracy", run.authors, run.measured),
        **_interval(case, "total", ""),
        **_interval(case, "comp", "_comp"),
        **_interval(case, "comm", "_comm"),
        "limit": case.found["limit"],
        "reason": _reason(case),
        "anomaly": standing_out,
        "extrapolation": case.found.get("extrapolation", []),
    }


def _times(name: str, times: Times) -> Row:
    return {f"{name}_{part}": getattr(times, part) for part in PARTS}


def _accuracies(name: str, predicted: Times, measured: Times) -> Row:
    return {
        f"{name}_{part}": accuracy(getattr(predicted, part), getattr(measured, part))
        for part in PARTS
    }


def _interval(case: Case, part: str, suffix: str) -> Row:
    """p10, p50, p90 and whether the measured time lies between the outer two."""
    found = case.intervals[part] if case.intervals else dict.fromkeys(QUANTILES)
    low, high, measured = found["p10"], found["p90"], getattr(case.run.measured, part)
    known = None not in (low, high, measured)
    return {
        **{f"{name}{suffix}": found[name] for name in QUANTILES},
        f"within{suffix}": low <= measured <= high if known else None,
    }


def _reason(case: Case) -> str | None:
    """Why there is no prediction; None where there is one."""
    if case.predicted.total is not None:
        return None
    return case.grid.misfit(0, 0) or f"no such configuration: {', '.join(case.found['limit'])}"
