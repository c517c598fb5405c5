"""Ablation: what each form and each calibrated parameter adds, by runs of ABCI.

Each in turn is switched off, a parameter also frozen at its prior's median, and all else is fitted
anew. A parameter has earned its place where times of models, and of scales, that were left out are
less probable without it, by more than two standard errors over the series.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import t as student

from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_least
from grids.entries.calibration import CALIBRATED
from grids.models.layers import Floats
from grids.names import CATALOGUE
from kernels.machine.software import Software
from sweep.calibration.cross_validation import LARGEST, SERIES, leave_out, predict_fitted
from sweep.calibration.fit import FREEDOM
from sweep.calibration.model_error import (
    DEFAULT,
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
ERRORS = 2.0  # standard errors that a gain has to exceed
# In the place of 0 and infinity, which have no logarithm: beyond what any time shows.
SMALL, LARGE = 1e-15, 1e15
FORMS = {
    "launches": ("layer_overhead", 0.0),
    "log files": ("log_open", 0.0),
    "gathers where a split ends": ("gather_rate", np.inf),
}
NOTE = (
    "Of all parameters: the mean logarithm of the density of times, of models and of the largest "
    "scales while they were left out. Of one that is frozen: by how much its absence lowers it; "
    "the ratio is that over its standard error, over the series. Notes: accuracies, "
    "total/compute/communication [%], of the fit and of runs that were left out."
)


@dataclass(frozen=True)
class Left:
    """Runs while they were left out: accuracies by scheme, and how probable their times were.

    logs [series]: sums of ln of the density of the times of JUDGED. times: how many these are.
    """

    accuracy: Mapping[str, Mapping[str, float]]
    logs: Floats
    times: int


def measure(effort: Effort) -> Report:
    """Each form switched off; unless quick, each parameter, too, and at its prior's median."""
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
        return Report("ablation", "what each form adds, on ABCI", tuple(rows), NOTE)
    for name, value in list_nothings().items():
        rows.append(_compare(f"{name} = {value:g}", whole, predict({name: _bound(value)})))
        prior = observations.priors[name].median
        rows.append(_compare(f"{name} = {prior:g}, its prior", whole, predict({name: prior})))
    return Report("ablation", "what each form and parameter adds, on ABCI", tuple(rows), NOTE)


def pass_no_hosts(observations: Observations) -> Observations:
    """The same runs, of which a single filter or channel group has no gradients in common."""
    case = observations.case
    work = case.machine_work
    divided = {
        name: replace(sent, undivided=np.zeros_like(sent.undivided))
        for name, sent in work.sent.items()
        if name == "filter"  # by channel, too
    }
    work = replace(work, sent={**work.sent, **divided})
    return replace(observations, case=replace(case, work=work))


def list_nothings() -> dict[str, float]:
    """The value of each calibrated parameter that changes nothing."""
    defaults = asdict(Software())
    return {name: float(defaults[name]) for name in CALIBRATED}


def leave_all_out(
    observations: Observations, schemes: Collection[str], frozen: Mapping[str, float]
) -> Left:
    """All runs that the schemes leave out, by calibrations with some parameters frozen."""
    residuals = find_residuals(observations, leave_out(observations, schemes, frozen))
    error = find_model_error(residuals)
    every = np.ones(len(observations), bool)
    fitted = calibrate_machine(observations, every, DEFAULT, frozen=frozen)
    of_fit = find_residuals(observations, predict_fitted(observations, fitted))
    judged = residuals.select(np.isin(residuals.schemes, JUDGED))
    counted = observations.counted[:, judged.rows]
    # What is not counted may have no spread.
    spread = np.where(counted, judged.spread(error), 1.0)
    densities = np.where(counted, find_densities(judged, spread), 0.0).sum(axis=0)
    return Left(
        accuracy=rate_schemes(of_fit, error) | rate_schemes(residuals, error),
        logs=_add_series(observations, judged, densities),
        times=int(counted.sum()),
    )


def find_densities(residuals: Residuals, spread: Floats) -> Floats:
    """ln of the density of each logarithm of a time [part, run]: Student's t, as in the fit."""
    return np.asarray(student.logpdf(residuals.off / spread, FREEDOM) - np.log(spread))


def compare_logs(whole: Left, without: Left) -> tuple[float, float]:
    """By how much a time's density falls, in the mean; and that over its standard error."""
    lost = whole.logs - without.logs
    error = np.sqrt(lost.size) * lost.std(ddof=1)
    return float(lost.sum() / whole.times), float(lost.sum() / error) if error else 0.0


def _add_series(observations: Observations, residuals: Residuals, values: Floats) -> Floats:
    """The sum of each series' values [run]."""
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
    """Accuracies of each scheme."""
    return "; ".join(
        f"{scheme} {'/'.join(f'{100 * rated[part]:.1f}' for part in PARTS)}"
        for scheme, rated in left.accuracy.items()
    )
