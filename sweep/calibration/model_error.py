"""Model error: how far runs are off that a calibration did not see, beyond what it is unsure of.

The parameters' uncertainty alone would be overconfident: formulas are wrong, too. The scales of
`ModelError` make the left-out runs most probable (Student's t, as in the fit),
under wide priors, since they are few. Errors of communication are then widened until, in whatever
way runs are left out, LEVEL of their times lie in the 80 % intervals, communicating and in total.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.optimize import minimize

from grids.entries.calibration import ModelError
from grids.models.layers import Floats
from kernels.arrays import Cells
from kernels.compiled import compiled
from kernels.run import Options
from kernels.uncertainty import STEPS, Uncertainty, spread
from sweep.calibration.cross_validation import LeftOut, Unseen
from sweep.calibration.fit import FREEDOM, log_times
from sweep.calibration.observations import Observations
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
BOUNDS = (0.01, 2.0)
LEVEL = 0.8
WIDER = 1.05 ** np.arange(30)
DEFAULT = ModelError(**{name: median for name, (median, _) in PRIOR.items()})


@dataclass(frozen=True, eq=False)
class Residuals:
    """Of runs left out [part, run], in the order of PARTS.

    off: ln of measured over predicted. sure: variance of the parameters and serial times. errors
    [scale, part, run]: variance that errors of 1 would add, in the order of SCALES.
    """

    off: Floats
    sure: Floats
    errors: Floats
    unseen: Cells
    away: Cells
    schemes: NDArray[np.str_]
    runs: int

    def spread(self, error: ModelError) -> Floats:
        """Standard deviation of `off`."""
        squares = np.square([getattr(error, name) for name in SCALES])
        widening = 1 + error.unseen * self.unseen + error.distance * self.away
        return np.asarray(np.sqrt(self.sure + widening**2 * np.tensordot(squares, self.errors, 1)))

    def within(self, error: ModelError) -> Floats:
        """1 where the measured time lies in its 80 % interval, else 0; NaN where there is none."""
        inside = np.abs(self.off) <= STEPS[90] * self.spread(error)
        return np.where(np.isfinite(self.off), inside, np.nan)


def residuals(seen: Observations, left: LeftOut) -> Residuals:
    """How far off the left-out runs are, and how far one could have known."""
    cases = left.cases
    with jax.enable_x64(True):
        expected = np.asarray(log_times(cases.known, cases.inputs, seen.options))
        spreads = [np.asarray(_spreads(cases, each, seen.options)) for each in _doubts(cases)]
    sure, *errors = np.square(spreads)
    return Residuals(
        off=np.log(seen.seconds[:, left.rows]) - expected,
        sure=sure,
        errors=np.array(errors) - sure,
        unseen=cases.unseen,
        away=cases.away,
        schemes=left.schemes,
        runs=np.unique(left.rows).size,
    )


def model_error(found: Residuals) -> ModelError:
    """The scales of the errors, by what was left out."""
    error = _most_probable(found)
    choices = (_widened(error, factor) for factor in WIDER)
    return next((each for each in choices if _covers(found, each)), _widened(error, WIDER[-1]))


def _widened(error: ModelError, factor: float) -> ModelError:
    wider = {"reduce": factor * error.reduce, "exchange": factor * error.exchange}
    return error.model_copy(update=wider)


def _covers(found: Residuals, error: ModelError) -> bool:
    within = found.within(error)[[PARTS.index(part) for part in ("total", "comm")]]
    for scheme in np.unique(found.schemes):
        own = within[:, found.schemes == scheme]
        # One that leaves but some runs out has too few to tell.
        if own.shape[1] == found.runs and any(_mean(each) < LEVEL for each in own):
            return False
    return True


def _mean(within: Floats) -> float:
    """1 where nothing was measured."""
    known = within[np.isfinite(within)]
    return float(known.mean()) if known.size else 1.0


def _most_probable(found: Residuals) -> ModelError:
    median, width = np.array(list(PRIOR.values())).T
    known = np.isfinite(found.off)
    times = found.off.shape[1] ** 0.5 / found.runs**0.5  # a run is left out by several schemes

    def surprise(at: Floats) -> float:
        scale = found.spread(_named(at))[known]
        away = np.log1p(np.square(found.off[known] / scale) / FREEDOM)
        student = (FREEDOM + 1) / 2 * away + np.log(scale)
        return float(np.sum(np.square((at - np.log(median)) / width)) / 2 + student.sum() / times)

    low, high = np.log(BOUNDS)
    best = minimize(surprise, np.log(median), method="TNC", bounds=[(low, high)] * len(PRIOR))
    return _named(best.x)


def _named(logs: Floats) -> ModelError:
    return ModelError(**dict(zip(PRIOR, np.exp(logs).tolist(), strict=True)))


def _doubts(cases: Unseen) -> list[Uncertainty]:
    """Without any error, and with one of them at a time."""
    one, none = np.ones_like(cases.away), np.zeros_like(cases.away)
    nothing = replace(cases.doubt, widening=one, **dict.fromkeys(SCALES, none))
    return [nothing, *(replace(nothing, **{name: one}) for name in SCALES)]


@compiled("options")
def _spreads(cases: Unseen, doubt: Uncertainty, options: Options) -> Array:
    given = cases.inputs
    found = spread(given.work, given.run, given.network, given.pe, cases.known, options, doubt)
    return jnp.stack([found.total, found.compute, found.communication])
