"""Model error: how far runs are off that a calibration did not see, beyond what it is unsure of.

The parameters' uncertainty alone would be overconfident: formulas are wrong, too. The scales of
`ModelError` make the runs that were left out in whole series, models, strategies or largest scales
most probable (Student's t, as in the fit), under wide priors, since they are few: a run whose
neighbours were fitted tells little of those that have none. Errors are then widened until, in
whatever way runs are left out, LEVEL of their times lie in the 80 % intervals: for series and
scales that nobody ran, or the part that is off in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from grids.entries.calibration import ModelError
from grids.models.layers import Floats
from kernels.compiled import compiled
from kernels.configuration.case import Case
from kernels.names.stored import PERCENTILES
from kernels.namespace import xp
from kernels.oracle.formulas import time_iteration
from kernels.oracle.uncertainty import spread
from sweep.calibration.cross_validation import NEAR, HeldOutRun
from sweep.calibration.fit import FREEDOM, log_times
from sweep.calibration.observations import Mask, Observations
from sweep.measured.runs import PARTS

# Medians and spreads of the priors: what a machine has of which no run was left out.
PRIOR = {
    "serial": (0.04, 0.5),
    "group": (0.12, 0.5),
    "reduce": (0.12, 0.5),
    "exchange": (0.2, 0.5),
    "unseen": (0.7, 0.6),
    "distance": (0.2, 0.8),
}
SCALES = ("serial", "group", "reduce", "exchange")
ERRORS = ("whole", "group", "reduce", "exchange")  # the same in an uncertainty
BOUNDS = (0.01, 2.0)
# The share that intervals from p10 to p90 promise.
LEVEL = 0.8
# Steps of 5 %, up to 1.05**30 = 4.3 times; what even that does not cover stays so.
WIDER, STEPS = 1.05, 30
# By the part whose intervals hold too few; of the total's, all of them.
SCALES_OF = {
    "total": SCALES,
    "comp": ("serial", "group"),
    "comm": ("reduce", "exchange"),
}
# What is at fault where a scheme's intervals hold too few: what a run was left out by.
WIDENED = {
    "series": ("unseen",),
    "model": ("unseen",),
    "strategy": ("unseen",),
    "largest scales": ("distance",),
    "all but one scale": ("distance",),
}
DEFAULT = ModelError(**{name: median for name, (median, _) in PRIOR.items()})


@dataclass(frozen=True, eq=False)
class Residuals:
    """How far runs that were left out are off [part, run], in the order of PARTS.

    off: ln of measured over predicted. sure: variance of the parameters and serial times. errors
    [scale, part, run]: variance that errors of 1 would add, in the order of SCALES. unseen, away:
    what widens them. rows: which runs these are; some are left out several times.
    """

    off: Floats
    sure: Floats
    errors: Floats
    unseen: Floats
    away: Floats
    schemes: NDArray[np.str_]
    rows: NDArray[np.int64]

    def select(self, chosen: Mask) -> "Residuals":
        """Some of the predictions."""
        kept = {field.name: getattr(self, field.name)[..., chosen] for field in fields(self)}
        return Residuals(**kept)

    def spread(self, error: ModelError) -> Floats:
        """Standard deviation of `off`."""
        squares = np.square([getattr(error, name) for name in SCALES])
        widening = 1 + error.unseen * self.unseen + error.distance * self.away
        return np.asarray(np.sqrt(self.sure + widening**2 * np.tensordot(squares, self.errors, 1)))

    def within(self, error: ModelError) -> Floats:
        """1 where the measured time lies in its 80 % interval, else 0; NaN where there is none."""
        inside = np.abs(self.off) <= PERCENTILES[90] * self.spread(error)
        return np.where(np.isfinite(self.off), inside, np.nan)


def find_residuals(observations: Observations, predictions: Sequence[HeldOutRun]) -> Residuals:
    """How far off the left-out runs are, and how far one could have known."""
    # One behind the other: a single program then answers for all.
    case: Case = jax.tree.map(
        lambda *runs: np.stack(runs, axis=-1), *(run.case for run in predictions)
    )
    expected = np.asarray(_predict(case)[0])
    spreads = [np.asarray(_predict(varied)[1]) for varied in _vary_errors(case)]
    sure, *errors = np.square(spreads)
    rows = np.array([run.row for run in predictions])
    return Residuals(
        off=np.log(observations.seconds[:, rows]) - expected,
        sure=sure,
        # Variances add up: what an error of 1 adds is the difference.
        errors=np.array(errors) - sure,
        unseen=np.stack([run.unseen for run in predictions], axis=-1),
        away=np.stack([run.away for run in predictions], axis=-1),
        schemes=np.array([run.scheme for run in predictions]),
        rows=rows,
    )


def rate_schemes(residuals: Residuals, error: ModelError) -> dict[str, dict[str, float]]:
    """By scheme: `rows`, the mean accuracy of each part, the share in its interval."""
    within = residuals.within(error)
    # As in `sweep.measured.accuracy`; 0 where a prediction is too long beyond measure.
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


def find_model_error(residuals: Residuals) -> ModelError:
    """The scales of the errors, by what was left out."""
    far = ~np.isin(residuals.schemes, NEAR)
    error = _find_most_probable(residuals.select(far) if far.any() else residuals)
    for _ in range(STEPS):
        narrow = _list_narrow(residuals, error)
        if not narrow:
            break
        error = _widen(error, narrow)
    return error


def _list_narrow(residuals: Residuals, error: ModelError) -> set[str]:
    """The errors that are too small: those of each scheme whose intervals hold too few times."""
    within = residuals.within(error)
    return {
        name
        for scheme in np.unique(residuals.schemes).tolist()
        for part, times in zip(PARTS, within[:, residuals.schemes == scheme], strict=True)
        if _average(times) < LEVEL
        for name in WIDENED.get(scheme, SCALES_OF[part])
    }


def _widen(error: ModelError, names: set[str]) -> ModelError:
    wider = {name: WIDER * getattr(error, name) for name in names}
    return error.model_copy(update=wider)


def _average(within: Floats) -> float:
    """The mean of what was measured, 1 where nothing was."""
    measured = within[np.isfinite(within)]
    return float(measured.mean()) if measured.size else 1.0


def _find_most_probable(residuals: Residuals) -> ModelError:
    median, width = np.array(list(PRIOR.values())).T
    measured = np.isfinite(residuals.off)
    # Schemes leave a run out by turns.
    times = (residuals.rows.size / max(1, np.unique(residuals.rows).size)) ** 0.5

    def surprise(at: Floats) -> float:
        scale = residuals.spread(_name_scales(at))[measured]
        away = np.log1p(np.square(residuals.off[measured] / scale) / FREEDOM)
        student = (FREEDOM + 1) / 2 * away + np.log(scale)
        return float(np.sum(np.square((at - np.log(median)) / width)) / 2 + student.sum() / times)

    low, high = np.log(np.outer(BOUNDS, np.ones(len(PRIOR))))
    # Without slopes: by differences of the surprise, TNC stopped a few percent away from the mode.
    best = minimize(
        surprise,
        np.log(median),
        method="Powell",
        bounds=Bounds(low, high),
        options={"xtol": 1e-6, "ftol": 1e-10},
    )
    return _name_scales(best.x)


def _name_scales(logs: Floats) -> ModelError:
    return ModelError(**dict(zip(PRIOR, np.exp(logs).tolist(), strict=True)))


def _vary_errors(case: Case) -> list[Case]:
    """The cases without any error of the model's own, and with one of them at a time."""
    uncertainty = case.uncertainty
    assert uncertainty is not None  # every run was predicted with its own
    one, none = np.ones_like(uncertainty.whole), np.zeros_like(uncertainty.whole)
    nothing = replace(uncertainty, widening=one, whole=none, group=none, reduce=none, exchange=none)
    changes: list[dict[str, Any]] = [{}] + [{name: one} for name in ERRORS]
    return [replace(case, uncertainty=replace(nothing, **change)) for change in changes]


@compiled(numpy=True)
def _predict(case: Case) -> tuple[Array, Array]:
    """ln of seconds an iteration, and its spread, both [part, run] in the order of PARTS."""
    spreads = spread(case, time_iteration(case))
    parts = [spreads.total, spreads.compute, spreads.communication]
    return log_times(case), xp.stack(parts)
