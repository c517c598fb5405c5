"""Residuals: how far off predictions of runs are, and how far off they were expected to be."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from paradl.grids.entries.calibration import ModelError
from paradl.kernels.arrays import Cells, xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case
from paradl.kernels.derivatives.density import log_times
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.stored import PERCENTILES
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
