"""Residuals: how far off predictions of runs are, and how far off they were expected to be.

Model error: how far off unseen runs are, beyond the uncertainty of the parameters. The scales of
`ModelError` are those that make left-out series, models, strategies and largest scales most
probable (Student's t, as in the fit). Runs whose neighbours were fitted do not count. Priors are
wide, because left-out runs are few. Then the errors are widened until, for every way of leaving
runs out, LEVEL of the times lie within the 80 % intervals: those for unseen series and scales, or
those of the part that is off in all schemes.

Before all, networks that err by more than is assumed widen the computing of others, and so no
prediction of networks that ran.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from paradl.grids.entries.calibration import ASSUMED, ModelError
from paradl.kernels.arrays import Cells, xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case
from paradl.kernels.derivatives.density import log_times
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.stored import FREEDOM, PERCENTILES
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.oracle.uncertainty import spread
from paradl.sweep.calibration.observations import Mask, Observations
from paradl.sweep.measured.runs import PARTS

SCALES = ("serial", "group", "reduce", "exchange")
ERRORS = ("whole", "group", "reduce", "exchange")  # the names of SCALES in an uncertainty


@dataclass(frozen=True, eq=False)
class HeldOutRun:
    """A run predicted by a calibration that did not see it. row: which run.

    case: with errors of 1, not widened. unseen, away: by how much `ModelError.unseen` and
    `ModelError.distance` of 1 widen the errors. is_new: whether no run of its network was fitted.
    """

    scheme: str
    row: int
    case: Case
    unseen: Cells
    away: Cells
    is_new: bool


@dataclass(frozen=True, eq=False)
class Residuals:
    """How far off left-out runs are [part, run], in the order of PARTS.

    off: ln of measured over predicted. sure: variance due to parameters and serial times. errors
    [scale, part, run]: variance that errors of 1 add, in the order of SCALES. unseen, away [run]:
    by how much those of `ModelError` widen it. computing [part, run]: variance that a spread of 1
    of an unseen network's computing adds. rows [run]: a run may be left out several times.
    """

    off: Floats
    sure: Floats
    errors: Floats
    unseen: Floats
    away: Floats
    computing: Floats
    schemes: NDArray[np.str_]
    rows: NDArray[np.int64]

    def select(self, chosen: Mask) -> "Residuals":
        """Return the chosen predictions."""
        kept = {field.name: getattr(self, field.name)[..., chosen] for field in fields(self)}
        return Residuals(**kept)

    def widen(self, unseen: float) -> "Residuals":
        """Return the same where computing of unseen networks has this spread."""
        return replace(self, sure=self.sure + unseen**2 * self.computing)

    def spread(self, error: ModelError) -> Floats:
        """Return the standard deviation of `off`."""
        squares = np.square([getattr(error, name) for name in SCALES])
        widening = 1 + error.unseen * self.unseen + error.distance * self.away
        return np.asarray(np.sqrt(self.sure + widening**2 * np.tensordot(squares, self.errors, 1)))

    def within(self, error: ModelError) -> Floats:
        """Return 1 where the time is within its 80 % interval, else 0; NaN if unmeasured."""
        inside = np.abs(self.off) <= PERCENTILES[90] * self.spread(error)
        return np.where(np.isfinite(self.off), inside, np.nan)


def find_residuals(observations: Observations, predictions: Sequence[HeldOutRun]) -> Residuals:
    """Compare left-out runs with their predictions and uncertainties."""
    # Stacked, so that a single compiled program predicts them all.
    case: Case = jax.tree.map(
        lambda *runs: np.stack(runs, axis=-1), *(run.case for run in predictions)
    )
    expected = np.asarray(_predict(case)[0])
    spreads = [np.asarray(_predict(varied)[1]) for varied in _vary_errors(case)]
    sure, *squares = np.square(spreads)
    # Variances add up, so an error of 1 adds the difference.
    errors = np.array(squares) - sure
    rows = np.array([run.row for run in predictions])
    return Residuals(
        off=np.log(observations.seconds[:, rows]) - expected,
        sure=sure,
        errors=errors,
        unseen=np.stack([run.unseen for run in predictions], axis=-1),
        away=np.stack([run.away for run in predictions], axis=-1),
        # Whole or divided.
        computing=(errors[0] + errors[1]) * np.array([run.is_new for run in predictions]),
        schemes=np.array([run.scheme for run in predictions]),
        rows=rows,
    )


def rate_schemes(residuals: Residuals, error: ModelError) -> dict[str, dict[str, float]]:
    """Return, by scheme, `rows`, each part's mean accuracy, and its share within intervals."""
    within = residuals.within(error)
    # Accuracy as in `sweep.measured.compare`; a prediction that overflows has 0.
    with np.errstate(over="ignore"):
        accuracy = np.maximum(0.0, 1 - np.abs(np.exp(-residuals.off) - 1))
    rated = {}
    for scheme in dict.fromkeys(residuals.schemes.tolist()):
        chosen = residuals.schemes == scheme
        rated[scheme] = {"rows": int(chosen.sum())} | {
            f"{part}{suffix}": float(np.nanmean(row))
            for suffix, values in (("", accuracy), ("_in_interval", within))
            for part, row in zip(PARTS, values[:, chosen], strict=True)
            if np.isfinite(row).any()
        }
    return rated


def _vary_errors(case: Case) -> list[Case]:
    """Return the case without model error, then with each error alone."""
    uncertainty = case.uncertainty
    assert uncertainty is not None  # cross-validation gives every run one
    one, none = np.ones_like(uncertainty.whole), np.zeros_like(uncertainty.whole)
    nothing = replace(uncertainty, widening=one, whole=none, group=none, reduce=none, exchange=none)
    changes: list[dict[str, Any]] = [{}] + [{name: one} for name in ERRORS]
    return [replace(case, uncertainty=replace(nothing, **change)) for change in changes]


@compiled(numpy=True)
def _predict(case: Case) -> tuple[Array, Array]:
    """Return ln of seconds per iteration and its spread, both [part, run] in the order of PARTS."""
    spreads = spread(case, time_iteration(case))
    parts = [spreads.total, spreads.compute, spreads.communication]
    return log_times(case), xp.stack(parts)


# Spreads of the priors, whose medians are `ASSUMED`; a machine without left-out runs keeps these.
SPREADS = dict.fromkeys(("serial", "group", "reduce", "exchange"), 0.5) | {
    "unseen": 0.6,
    "distance": 0.8,
}
# Schemes that leave close neighbours of a run in, and so flatter; the others count.
NEAR = ("configuration", "scale")
BOUNDS = (0.01, 2.0)
LEVEL = 0.8  # the share of times that belongs between p10 and p90
# Steps of 5 %, up to 1.05**30 = 4.3 times; errors that would need more stay too small.
WIDER, STEPS = 1.05, 30
COMPUTING = 0.25  # squared share of compute from which a time tells of it
MOST = 10.0  # the largest spread of a file: unknown
# The errors to widen if the intervals of a part hold too few times.
SCALES_OF = {"total": SCALES, "comp": ("serial", "group"), "comm": ("reduce", "exchange")}
# The errors to widen if the intervals of a scheme do, by what its runs were left out for.
WIDENED = {
    "series": ("unseen",),
    "model": ("unseen",),
    "strategy": ("unseen",),
    "largest scales": ("distance",),
    "all but one scale": ("distance",),
}


def find_model_error(residuals: Residuals) -> ModelError:
    """Return the model's errors, by how far off left-out runs are."""
    far = ~np.isin(residuals.schemes, NEAR)
    error = _find_most_probable(residuals.select(far) if far.any() else residuals)
    for _ in range(STEPS):
        wider = {name: WIDER * getattr(error, name) for name in _list_narrow(residuals, error)}
        error = error.model_copy(update=wider)
        if not wider:
            break
    return error


def find_unseen_spread(residuals: Residuals) -> float:
    """Return the spread of unseen networks' computing by which LEVEL of times are in intervals.

    It is 0 if errors that are assumed for all runs suffice.
    """
    left = residuals.select(residuals.schemes == "model")
    least = 0.0
    for off, sure, squares, within in zip(
        left.off, left.sure, left.computing, left.within(ASSUMED), strict=True
    ):
        measured = np.isfinite(off)
        timed = measured & (squares >= COMPUTING)
        if timed.any() and within[measured].mean() < LEVEL:
            away = np.square(off[timed] / PERCENTILES[90]) - sure[timed]
            missing = np.maximum(away, 0.0) / squares[timed]
            least = max(least, float(np.quantile(missing, LEVEL, method="higher")))
    return min(math.sqrt(least), MOST)


def _list_narrow(residuals: Residuals, error: ModelError) -> set[str]:
    """List the errors that are too small: intervals of some scheme hold too few times."""
    within = residuals.within(error)
    return {
        name
        for scheme in np.unique(residuals.schemes).tolist()
        for part, times in zip(PARTS, within[:, residuals.schemes == scheme], strict=True)
        # A part that was not measured is in no interval.
        if np.isfinite(times).any() and np.nanmean(times) < LEVEL
        for name in WIDENED.get(scheme, SCALES_OF[part])
    }


def _find_most_probable(residuals: Residuals) -> ModelError:
    width = np.array(list(SPREADS.values()))
    median = np.array([getattr(ASSUMED, name) for name in SPREADS])
    measured = np.isfinite(residuals.off)
    # A run that several schemes leave out must not count several times.
    times = (residuals.rows.size / max(1, np.unique(residuals.rows).size)) ** 0.5

    def surprise(at: Floats) -> float:
        scale = residuals.spread(_name_scales(at))[measured]
        away = np.log1p(np.square(residuals.off[measured] / scale) / FREEDOM)
        student = (FREEDOM + 1) / 2 * away + np.log(scale)
        return float(np.sum(np.square((at - np.log(median)) / width)) / 2 + student.sum() / times)

    low, high = np.log(np.outer(BOUNDS, np.ones(len(SPREADS))))
    # Powell needs no slopes: with finite differences, TNC stopped a few percent off the mode.
    best = minimize(
        surprise,
        np.log(median),
        method="Powell",
        bounds=Bounds(low, high),
        options={"xtol": 1e-6, "ftol": 1e-10},
    )
    return _name_scales(best.x)


def _name_scales(logs: Floats) -> ModelError:
    return ModelError(**dict(zip(SPREADS, np.exp(logs).tolist(), strict=True)))
