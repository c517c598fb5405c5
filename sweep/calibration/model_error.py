"""Model error: how far off unseen runs are, beyond the uncertainty of the parameters.

That uncertainty alone would be overconfident, since formulas are wrong too. The scales of
`ModelError` are those that make left-out series, models, strategies and largest scales most
probable (Student's t, as in the fit). Runs whose neighbours were fitted do not count, since they
say little about runs without neighbours. Priors are wide, because left-out runs are few. Then the
errors are widened until, for every way of leaving runs out, LEVEL of the times lie within the 80 %
intervals: those for unseen series and scales, or those of the part that is off in all schemes.

Before all, networks that err by more than is assumed widen the computing of others, and so no
prediction of networks that ran.
"""

import math

import numpy as np
from scipy.optimize import Bounds, minimize

from paradl.grids.entries.calibration import ASSUMED, ModelError
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.stored import FREEDOM, PERCENTILES
from paradl.sweep.calibration.residuals import SCALES, Residuals
from paradl.sweep.measured.runs import PARTS

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
SCALES_OF = {
    "total": SCALES,
    "comp": ("serial", "group"),
    "comm": ("reduce", "exchange"),
}
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
