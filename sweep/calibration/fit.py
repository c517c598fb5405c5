"""Fit: the most probable parameters of a machine, and how sure they are.

Errors of the logarithms of total, compute and communication follow Student's t, so that a congested
run does not bend the rest. Parameters have log-normal priors and bounds (`grids.entries`); so
have the models' times on one PE, around their profiles. The covariance is Laplace's: the inverse
of the curvature of the log-posterior at its mode. Coordinates: (ln value - ln median) / spread of
the prior, of the parameters and then of the models.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import Bounds, minimize

from grids.entries.calibration import PRIORS, SerialTime
from grids.models.layers import Floats
from kernels import calibrated
from kernels.calibration import Calibration
from kernels.compiled import compiled
from kernels.run import Options
from sweep.calibration.observations import Inputs, Mask, Observations
from sweep.errors import RunError
from sweep.measured.runs import PARTS

FREEDOM = 4.0  # degrees of Student's t
NANOSECOND = 1e-9  # keeps the logarithm of no time finite

# Spreads of a model's time on one PE: around its profile, from other software and another day; or
# around the roofline, which knows no layer's efficiency.
PROFILE = 0.15
ROOFLINE = 0.5

# Scales of the errors. Communication depends on what else a network carries, compute does not, and
# a total is measured best. To fit them made runs that were left out less accurate.
NOISE = {"total": 0.03, "comp": 0.06, "comm": 0.2}
# Small errors leave several modes. One search begins with large ones, which leave few; others begin
# anywhere near the priors' medians.
BROADER = (8.0, 4.0, 2.0)
STARTS = 4
AROUND = 0.7  # in spreads of the prior
STEPS = 2000

SIZE = len(PRIORS)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Parameters, the covariance of their logarithms, and the times of the models that ran."""

    values: Floats
    covariance: Floats
    serial: dict[str, SerialTime]


@dataclass(frozen=True, eq=False)
class Scale:
    """ln median and spread of each prior, and its bounds in units of the spread."""

    median: Floats
    spread: Floats
    bounds: Bounds


@compiled("options")
def log_times(known: Calibration, inputs: Inputs, options: Options) -> Array:
    """ln of seconds an iteration [part, run] in the order of PARTS."""
    terms = calibrated.iteration_terms(
        inputs.work, inputs.run, inputs.network, inputs.pe, known, options
    )
    comp, comm = terms.compute, terms.communication
    return jnp.log(jnp.stack([comp + comm, comp, comm]) + NANOSECOND)


def fit(seen: Observations, train: Mask) -> Posterior:
    """The posterior of the runs in `train`. RunError: there is none."""
    scale = _scale(seen)
    data = scale.median, scale.spread, seen.inputs, seen.of_model, *_weighed(seen, train)
    with jax.enable_x64(True):
        problem = (*jax.device_put(data), seen.options)  # once, not at each step
        at = _best_mode(scale, problem)
        curvature = np.asarray(_curvature()(at, 1.0, *problem))
    values = np.exp(scale.median + scale.spread * at)
    covariance = _inverse(curvature) * scale.spread * scale.spread[:, None]
    return Posterior(
        values[:SIZE],
        covariance[:SIZE, :SIZE],
        _serial(seen, train, values[SIZE:], np.diag(covariance)[SIZE:] ** 0.5),
    )


def _scale(seen: Observations) -> Scale:
    priors = PRIORS.values()
    profiled = (seen.of_model * seen.profiled).any(axis=1)
    models = np.zeros(len(seen.models))
    anywhere = np.full(len(seen.models), np.inf)
    median = np.concatenate([np.log([each.median for each in priors]), models])
    spread = np.concatenate(
        [[each.spread for each in priors], np.where(profiled, PROFILE, ROOFLINE)]
    )
    low = np.concatenate([np.log([each.low for each in priors]), -anywhere])
    high = np.concatenate([np.log([each.high for each in priors]), anywhere])
    return Scale(median, spread, Bounds((low - median) / spread, (high - median) / spread))


def _weighed(seen: Observations, train: Mask) -> tuple[Floats, Floats]:
    """ln of the measured seconds [part, run], and 1 where they count."""
    known = np.isfinite(seen.seconds)
    return np.log(np.where(known, seen.seconds, 1.0)), (known & train).astype(float)


def _best_mode(scale: Scale, problem: tuple[Any, ...]) -> Floats:
    first = np.zeros_like(scale.median)
    for broader in BROADER:
        _, first = _mode(first, scale.bounds, (broader, *problem))
    random = np.random.default_rng(0)
    others = AROUND * random.standard_normal((STARTS, first.size))
    found = [_mode(start, scale.bounds, (1.0, *problem)) for start in (first, *others)]
    # Of modes that are equal but for rounding the first.
    return min(found, key=lambda each: round(each[0], 6))[1]


def _mode(start: Floats, bounds: Bounds, problem: tuple[Any, ...]) -> tuple[float, Floats]:
    """The least surprise near a start, and where it is."""

    def value_and_slope(at: Floats) -> tuple[float, Floats]:
        value, slope = _value_and_slope()(at, *problem)
        return float(value), np.asarray(slope)

    inside = np.clip(start, bounds.lb, bounds.ub)
    # Truncated Newton: SciPy's L-BFGS-B waits for BLAS threads, which a busy machine keeps waiting.
    found = minimize(
        value_and_slope, inside, jac=True, method="TNC", bounds=bounds, options={"maxfun": STEPS}
    )
    if not np.isfinite(found.fun):
        raise RunError("the fit found no parameters; are the measured times in seconds?")
    return float(found.fun), np.asarray(found.x)


def _surprise(
    at: Array,
    broader: float,
    median: Array,
    spread: Array,
    inputs: Inputs,
    of_model: Array,
    logs: Array,
    weights: Array,
    options: Options,
) -> Array:
    """-ln of the posterior density, up to a constant."""
    values = jnp.exp(median + spread * at)
    slower = inputs.slower(values[SIZE:] @ of_model)
    expected = log_times(Calibration(*values[:SIZE]), slower, options)
    errors = broader * np.array([[NOISE[part]] for part in PARTS])
    student = (FREEDOM + 1) / 2 * jnp.log1p(jnp.square((expected - logs) / errors) / FREEDOM)
    return jnp.sum(jnp.square(at)) / 2 + jnp.sum(weights * student)


@cache
def _value_and_slope() -> Any:
    return jax.jit(jax.value_and_grad(_surprise), static_argnames="options")


@cache
def _curvature() -> Any:
    return jax.jit(jax.hessian(_surprise), static_argnames="options")


def _inverse(curvature: Floats) -> Floats:
    """Of a curvature that is at least the prior's, 1: no run makes one less sure."""
    values, axes = np.linalg.eigh(curvature)
    return np.asarray((axes / np.maximum(values, 1.0)) @ axes.T)


def _serial(
    seen: Observations, train: Mask, factors: Floats, spreads: Floats
) -> dict[str, SerialTime]:
    """Of the models that ran."""
    ran = {run.model for run, used in zip(seen.runs, train, strict=True) if used}
    found = zip(seen.models, factors.tolist(), spreads.tolist(), strict=True)
    return {
        model: SerialTime(factor=factor, spread=spread)
        for model, factor, spread in found
        if model in ran
    }
