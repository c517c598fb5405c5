"""Measure what each formula and calibrated parameter contributes, on runs of ABCI.

One at a time is switched off, or frozen at its prior's median, and all others are refitted. A
parameter earns its place if times of left-out models and scales are less probable without it, by
more than two standard errors over the series.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import t as student

from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from grids.entries.calibration import ASSUMED, CALIBRATED
from grids.entries.names import CATALOGUE
from kernels.machine.software import Software
from kernels.names.arrays import Floats
from sweep.calibration.cross_validation import LARGEST, SERIES, leave_out, predict_fitted
from sweep.calibration.fit import FREEDOM
from sweep.calibration.model_error import (
    Residuals,
    find_model_error,
    find_residuals,
    rate_schemes,
)
from sweep.calibration.observations import Observations, observe
from sweep.calibration.posterior import calibrate_machine
from sweep.measured.runs import PARTS, read_runs

RUNS, SYSTEM = CATALOGUE / "measured" / "abci.csv", "abci"
JUDGED = ("model", LARGEST)
SCHEMES = ("strategy", *JUDGED)
ERRORS = 2.0  # standard errors that a gain must exceed
# Replace 0 and infinity, which have no logarithm; both are beyond what any time would show.
SMALL, LARGE = 1e-15, 1e15
FORMS = {
    "launches": ("layer_overhead", 0.0),
    "log files": ("log_open", 0.0),
    "gathers where a split ends": ("gather_rate", np.inf),
}
NOTE = (
    "All parameters: mean log density of the times of left-out models and largest scales. One "
    "frozen parameter: by how much freezing lowers that mean; the ratio is this over its standard "
    "error over the series. Notes: accuracies, total/compute/communication [%], of the fit and of "
    "left-out runs."
)


@dataclass(frozen=True)
class Left:
    """Left-out runs: accuracies by scheme, and how probable their times are.

    logs [series]: sums of the log density of the times of JUDGED. times: their number.
    """

    accuracy: Mapping[str, Mapping[str, float]]
    logs: Floats
    times: int


def measure(effort: Effort) -> Report:
    """Switch off each form and, unless quick, each parameter, or freeze it at its prior."""
    observations = observe(read_runs(RUNS), SYSTEM)
    quick = effort.rounds < 3
    predict = partial(leave_all_out, observations, SCHEMES)
    whole = predict({})
    rows = [Row("all parameters", whole.logs.sum() / whole.times, "", note=_write(whole))]
    for form, (name, value) in FORMS.items():
        without = predict({name: _bound(value)})
        rows.append(_compare(f"without {form}", whole, without))
    without = leave_all_out(pass_no_hosts(observations), SCHEMES, {})
    rows.append(_compare("without the host path of a flat group", whole, without))
    if quick:
        return Report("ablation", "what each form contributes, on ABCI", tuple(rows), NOTE)
    for name, value in list_nothings().items():
        rows.append(_compare(f"{name} = {value:g}", whole, predict({name: _bound(value)})))
        prior = observations.priors[name].median
        rows.append(_compare(f"{name} = {prior:g}, its prior", whole, predict({name: prior})))
    title = "what each form and parameter contributes, on ABCI"
    return Report("ablation", title, tuple(rows), NOTE)


def pass_no_hosts(observations: Observations) -> Observations:
    """Return the same runs, with no undivided gradients in filter and channel groups."""
    case = observations.case
    work = case.machine_work
    divided = {
        name: replace(sent, undivided=np.zeros_like(sent.undivided))
        for name, sent in work.sent.items()
        if name == "filter"  # channel groups use the same entry
    }
    work = replace(work, sent={**work.sent, **divided})
    return replace(observations, case=replace(case, work=work))


def list_nothings() -> dict[str, float]:
    """Return the value of each calibrated parameter that has no effect."""
    defaults = asdict(Software())
    return {name: float(defaults[name]) for name in CALIBRATED}


def leave_all_out(
    observations: Observations, schemes: Collection[str], frozen: Mapping[str, float]
) -> Left:
    """Predict all runs that the schemes leave out, with some parameters frozen."""
    residuals = find_residuals(observations, leave_out(observations, schemes, frozen))
    error = find_model_error(residuals)
    all_runs = np.ones(len(observations), bool)
    fitted = calibrate_machine(observations, all_runs, ASSUMED, frozen=frozen)
    fit_residuals = find_residuals(observations, predict_fitted(observations, fitted))
    judged = residuals.select(np.isin(residuals.schemes, JUDGED))
    counted = observations.counted[:, judged.rows]
    # Times that do not count may have no spread.
    spread = np.where(counted, judged.spread(error), 1.0)
    densities = np.where(counted, find_densities(judged, spread), 0.0).sum(axis=0)
    return Left(
        accuracy=rate_schemes(fit_residuals, error) | rate_schemes(residuals, error),
        logs=_add_series(observations, judged, densities),
        times=int(counted.sum()),
    )


def find_densities(residuals: Residuals, spread: Floats) -> Floats:
    """Return the log density of each log time [part, run]: Student's t, as in the fit."""
    return np.asarray(student.logpdf(residuals.off / spread, FREEDOM) - np.log(spread))


def compare_logs(whole: Left, without: Left) -> tuple[float, float]:
    """Return by how much the mean log density falls, and that over its standard error."""
    lost = whole.logs - without.logs
    error = np.sqrt(lost.size) * lost.std(ddof=1)
    return float(lost.sum() / whole.times), float(lost.sum() / error) if error else 0.0


def _add_series(observations: Observations, residuals: Residuals, values: Floats) -> Floats:
    """Sum the values [run] of each series."""
    labels = observations.labels(*SERIES)
    sums = dict.fromkeys(labels, 0.0)
    for row, value in zip(residuals.rows.tolist(), values.tolist(), strict=True):
        sums[labels[row]] += value
    return np.array(list(sums.values()))


def _bound(value: float) -> float:
    return float(np.clip(value, SMALL, LARGE))


def _compare(what: str, whole: Left, without: Left) -> Row:
    gain, ratio = compare_logs(whole, without)
    goal = at_least(ratio, ERRORS)
    return Row(what, gain, "", ratio, "standard error", (goal,), _write(without))


def _write(left: Left) -> str:
    """Write the accuracies of each scheme."""
    return "; ".join(
        f"{scheme} {'/'.join(f'{100 * rated[part]:.1f}' for part in PARTS)}"
        for scheme, rated in left.accuracy.items()
    )
