"""Calibrate: fit a machine to a file of measured runs, and write it, as `paradl calibrate` does.

The file is YAML with the meaning and unit of each number, rounded to its meaningful digits, so that
the same runs give the same file everywhere. Doubtful runs are refused: a fit is for machines that
differ from their predictions, so runs of a network that are off alike are fitted, unless they are
off by more than machines are.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paradl.grids.entries.calibration import ASSUMED, CalibrationFile, list_priors
from paradl.grids.entries.systems import System
from paradl.grids.entries.yamltext import format_entry
from paradl.grids.reading.errors import InputError, format_count, format_text
from paradl.grids.reading.textfile import write_text
from paradl.sweep.calibration.cross_validation import FITTED, leave_out, predict_fitted
from paradl.sweep.calibration.fit import calibrate_machine
from paradl.sweep.calibration.layouts import is_layout, observe_layouts
from paradl.sweep.calibration.observations import Observations, expect_one_system, observe
from paradl.sweep.calibration.residuals import (
    find_model_error,
    find_residuals,
    find_unseen_spread,
    rate_schemes,
)
from paradl.sweep.engine.resources import keep_programs
from paradl.sweep.measured.anomalies import GROWN, find_anomalies, find_deviation
from paradl.sweep.measured.predicted_runs import (
    DOUBT,
    Conditions,
    PredictedRun,
    is_doubtful,
    predict_runs,
)
from paradl.sweep.measured.runs import read_runs


def calibrate(
    path: str | Path,
    *,
    system: str | None = None,
    cross_validation: bool = True,
    keep_anomalies: bool = False,
) -> CalibrationFile:
    """Return parameters fitted to a CSV file of runs, with their uncertainty and accuracy.

    Runs of transformers' layouts move priors of parameters and all times, other runs give the
    machine's parameters. system: of rows that name none. Without cross-validation, the model's
    errors are assumed, and no accuracy is of left-out runs. InputError: a mistake in the file, with
    its line, or, without keep_anomalies, runs far from their prediction. RunError: there is no fit.

    >>> import paradl
    >>> import pandas as pd
    >>> run = {"model": "llama2_7b", "dataset": "pile", "strategy": "data+tensor:tensor=8,micro=1"}
    >>> run |= {"p": 32, "samples_per_replica": 64, "total_s": 3.4}
    >>> pd.DataFrame([run]).to_csv("runs.csv", index=False)
    >>> fitted = paradl.calibrate("runs.csv", system="dgx-h100")
    >>> round(fitted.layouts.parameters["node_collective"], 2)
    0.99
    """
    file, _ = calibrate_system(
        path, system, cross_validation=cross_validation, keep_anomalies=keep_anomalies
    )
    return file


def calibrate_system(
    path: str | Path, system: str | None, *, cross_validation: bool, keep_anomalies: bool
) -> tuple[CalibrationFile, System]:
    """Return the answer of `calibrate`, and the system that the runs are of."""
    keep_programs()
    runs = read_runs(Path(path))
    layouts = [run for run in runs if is_layout(run)]
    others = [run for run in runs if not is_layout(run)]
    observed = observe_layouts(layouts, system) if layouts else None
    observations = observe(others, system) if others else None
    if observed and observations:
        names = {others[0]: observations.system.name, layouts[0]: observed.system.name}
        first = [run for run in runs if run in names]  # in the order of the file
        expect_one_system(first, [names[run] for run in first])
    if not keep_anomalies:
        refuse_doubtful_runs(predict_runs(runs, Conditions(system, "none", {"oracle": "machine"})))
    if not observations:
        assert observed
        machine, file = observed.system, observed.calibrate(cross_validation)
    else:
        machine, file = observations.system, _fit(observations, cross_validation)
        if observed:
            file = observed.add_to(file, cross_validation)
    counts = Counter(run.source for run in runs if run.source)
    counted = (f"{count} of {name}" for name, count in counts.items())
    measured = format_count(len(runs), "measured run")
    described = {
        "title": f"{file.name}, calibrated from {measured}",
        # The file, and how many of its runs each source has.
        "source": (", ".join([Path(path).name, *counted]),),
    }
    return file.model_copy(update=described), machine


def _fit(observations: Observations, cross_validation: bool) -> CalibrationFile:
    """Fit the machine's parameters to runs of other strategies than layouts."""
    file = calibrate_machine(observations, np.ones(len(observations), bool), ASSUMED)
    left = leave_out(observations) if cross_validation else []
    residuals = find_residuals(observations, [*predict_fitted(observations, file), *left])
    unseen = find_unseen_spread(residuals)
    residuals = residuals.widen(unseen)
    of_left = residuals.select(residuals.schemes != FITTED)
    error = find_model_error(of_left) if left else ASSUMED
    return file.model_copy(
        update={
            "unseen_spread": unseen or None,
            "error": error,
            "accuracy": rate_schemes(residuals, error),
        }
    )


def list_doubtful_factors(file: CalibrationFile) -> list[str]:
    """Return warnings about factors that are larger than machines explain."""
    factors = {model: time.factor for model, time in file.serial.items()}
    if file.layouts:
        factors["layouts"] = file.layouts.factor
    return [
        f"{name}: fitted to {factor:,.4g} times the predicted time; are all times in seconds?"
        for name, factor in factors.items()
        if is_doubtful(factor)
    ]


HEAD = (
    "Parameters of this machine, fitted to measured runs. Written by `paradl calibrate`, which "
    "overwrites changes. A spread is that of the logarithm: 0.1 is about 10 %."
)
# These numbers have four significant digits, all others three.
FINE = ("value", "factor", "profile_factor", "profile_spread", "roofline_factor", "roofline_spread")
# Keys of a file whose runs were all of layouts.
WITHOUT_PARAMETERS = (
    *("name", "title", "source", "system", "oracle", "precision", "software"),
    *("switches", "layouts", "accuracy"),
)


def write(file: CalibrationFile, path: Path) -> None:
    """Write or overwrite a file. InputError: it cannot be written."""
    write_text(format_file(file), path)


def format_file(file: CalibrationFile) -> str:
    """Return the file's text."""
    values = {key: _round(key, part) for key, part in file.definition().items()}
    if not file.parameters:  # runs of layouts alone say nothing about the rest
        values = {key: value for key, value in values.items() if key in WITHOUT_PARAMETERS}
    else:
        # Adding 0 turns -0 into 0.
        lines = [[round(number, 2) + 0.0 for number in row] for row in file.correlation]
        values["correlation"] = lines
        for parameter in values["parameters"].values():
            if parameter["determined"]:
                del parameter["determined"]
    # Each parameter with its meaning, unit and prior.
    comments = {}
    for name, prior in list_priors(file.precision, file.software).items():
        unit = "" if prior.row.unit == "1" else f" [{prior.row.unit}]"
        comments[name] = f"{prior.row.meaning}{unit} ({prior.median:.3g}, {prior.spread:g})"
    return format_entry(file, HEAD, values, comments)


def _round(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _round(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [_round(key, part) for part in value]
    digits = 4 if key in FINE else 3
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def refuse_doubtful_runs(runs: Sequence[PredictedRun]) -> None:
    """Raise InputError for runs off by MOST, or as no other run of their network is."""
    doubts = list(_list_doubts(runs))
    if not doubts:
        return
    (first, reason), *others = doubts
    if others:
        reason = f"{reason}; in doubt, too: {len(others):,} more, next {others[0][0].row.where}"
    raise InputError(
        reason,
        where=first.row.where,
        advice="correct them, or fit them all the same with keep_anomalies=True",
    )


def _list_doubts(runs: Sequence[PredictedRun]) -> Iterator[tuple[PredictedRun, str]]:
    """Yield each doubtful run, with the reason."""
    factors: dict[tuple[str, str], list[float]] = {}  # by network and part
    deviations = [find_deviation(run) for run in runs]
    for run, deviation in zip(runs, deviations, strict=True):
        if deviation:
            factors.setdefault((run.row.model, deviation.part), []).append(deviation.factor)
    for run, deviation, anomaly in zip(runs, deviations, find_anomalies(runs), strict=True):
        total = run.compare("total")
        if total and is_doubtful(total.factor):
            reason = (
                f"the iteration took {total.measured:.3g} s, {total.factor:,.4g} times the "
                f"predicted {total.predicted:.3g} s: {DOUBT}"
            )
            yield run, reason
        elif deviation and anomaly:
            alike = factors[run.row.model, deviation.part]
            if sum(1 / GROWN <= other / deviation.factor <= GROWN for other in alike) < 2:
                unlike = f", as in no other run of {format_text(run.row.model)}"
                yield run, f"{anomaly['what']}{unlike}: {anomaly['cause']}"
