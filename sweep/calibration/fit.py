"""Fit: the most probable parameters of a machine, and how sure they are.

Errors of the logarithms of total, compute and communication follow Student's t, so that a congested
run does not bend the rest; a run that measured both parts counts by these alone, since its total
is their sum. Parameters have log-normal priors and bounds (`grids.entries`); so have the models'
times on one PE, around their profiles and the machine that all of them ran on (`machine_time`).
The covariance is Laplace's: the inverse of the curvature of the log-posterior at its mode.
Coordinates: (ln value - ln median) / spread of the prior, of the parameters, of the machine's time,
and of each model's deviation from it. A parameter may be frozen: its value then is known, and its
spread 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.linalg import block_diag
from scipy.optimize import Bounds, minimize

from grids.entries.calibration import LogPrior, SerialTime
from grids.models.layers import Floats
from kernels.arrays import Cells
from kernels.compiled import compiled, put_on_device
from kernels.configuration.case import Case
from kernels.namespace import xp
from kernels.oracle.formulas import time_iteration
from sweep.calibration.layer_work import LayerWork
from sweep.calibration.machine_time import build_root, predict_unseen
from sweep.calibration.observations import Mask, Observations, apply_parameters
from sweep.errors import RunError
from sweep.measured.runs import PARTS

FREEDOM = 4.0  # degrees of Student's t
NANOSECOND = 1e-9  # keeps the logarithm of no time finite

# Spreads of a model's time on one PE: around its profile, from other software and another day; or
# around the roofline, which knows no layer's efficiency.
PROFILE = 0.15
ROOFLINE = 0.17

# Scales of the errors. Communication depends on what else a network carries, compute does not, and
# a total is measured best. To fit them made runs that were left out less accurate.
NOISE = {"total": 0.03, "comp": 0.06, "comm": 0.2}
# Small errors leave several modes. One search begins with large ones, which leave few; others begin
# anywhere near the priors' medians.
BROADER = (8.0, 4.0, 2.0)
STARTS = 4
AROUND = 0.7  # in spreads of the prior
STEPS = 2000
STEP = 1e-5  # of a second derivative, in spreads of the prior


@dataclass(frozen=True, eq=False)
class Posterior:
    """Parameters, the covariance of their logarithms, and the times of the models that ran.

    profiled, roofline: the times of models that did not, with a profile and without.
    """

    values: Floats
    covariance: Floats
    serial: dict[str, SerialTime]
    profiled: SerialTime
    roofline: SerialTime


@dataclass(frozen=True, eq=False)
class PriorScale:
    """ln median of each prior, of parameters and models, and bounds of the coordinates.

    root [parameter and model, coordinate]: of the priors' covariance.
    """

    median: Floats
    root: Floats
    bounds: Bounds


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("broader", "median", "root", "case", "layers", "of_model", "logs", "weights"),
    meta_fields=("names",),
)
@dataclass(frozen=True)
class Data:
    """The constants of the posterior density.

    broader: factor on the errors' scales. median [parameter], root
    [parameter, coordinate]: of the priors' logarithms.
    of_model [model, run]. logs, weights [part, run]: of the measured seconds, 1 where they count.
    names: of the parameters.
    """

    broader: Cells
    median: Floats
    root: Floats
    case: Case
    layers: LayerWork
    of_model: Floats
    logs: Floats
    weights: Floats
    names: tuple[str, ...]


@compiled(numpy=True)
def log_times(case: Case) -> Array:
    """ln of seconds an iteration [part, run] in the order of PARTS."""
    times = time_iteration(case)
    comp, comm = times.compute, times.communication
    return xp.log(xp.stack([comp + comm, comp, comm]) + NANOSECOND)


def fit(
    observations: Observations,
    train: Mask,
    starts: int = STARTS,
    frozen: Mapping[str, float] = {},
) -> Posterior:
    """The posterior of the runs in `train`, sought from so many places. RunError: there is none.

    frozen: values of parameters that the runs are not asked about.
    """
    scale = _find_scale(observations, frozen)
    logs, weights = _weigh(observations, train)
    data = put_on_device(  # once, not at each step
        Data(
            broader=np.ones(()),
            median=scale.median,
            root=scale.root,
            case=observations.case,
            layers=observations.layers,
            of_model=observations.of_model,
            logs=logs,
            weights=weights,
            names=tuple(observations.priors),
        )
    )
    size = len(observations.priors)
    at = _find_best_mode(scale, data, starts)
    logs = scale.median + scale.root @ at
    values = np.exp(logs)
    of_coordinates = _invert(_find_curvature(at, data))
    covariance = scale.root @ of_coordinates @ scale.root.T
    machine = float(at[size]), float(of_coordinates[size, size])
    return Posterior(
        values[:size],
        covariance[:size, :size],
        _list_serial_times(observations, train, values[size:], np.diag(covariance)[size:] ** 0.5),
        profiled=predict_unseen(PROFILE, *machine),
        roofline=predict_unseen(ROOFLINE, *machine),
    )


def _find_scale(observations: Observations, frozen: Mapping[str, float]) -> PriorScale:
    priors = [
        _freeze(prior, frozen[name]) if name in frozen else prior
        for name, prior in observations.priors.items()
    ]
    profiled = (observations.of_model * observations.profiled).any(axis=1)
    models = np.zeros(len(observations.models))
    anywhere = np.full(1 + len(observations.models), np.inf)
    median = np.concatenate([np.log([prior.median for prior in priors]), models])
    spread = np.array([prior.spread for prior in priors])
    of_models = np.where(profiled, PROFILE, ROOFLINE)
    unit = np.where(spread > 0, spread, 1.0)
    low, high = (
        (np.log([getattr(prior, end) for prior in priors]) - median[: unit.size]) / unit
        for end in ("low", "high")
    )
    bounds = Bounds(np.append(low, -anywhere), np.append(high, anywhere))
    return PriorScale(median, block_diag(np.diag(spread), build_root(of_models)), bounds)


def _freeze(prior: LogPrior, value: float) -> LogPrior:
    """The prior of a known value."""
    return replace(prior, median=value, spread=0.0, low=value, high=value)


def _weigh(observations: Observations, train: Mask) -> tuple[Floats, Floats]:
    """ln of the measured seconds [part, run], and 1 where they count."""
    counted = observations.counted & train
    return np.log(np.where(counted, observations.seconds, 1.0)), counted.astype(float)


def _find_best_mode(scale: PriorScale, data: Data, starts: int) -> Floats:
    first = np.zeros(scale.root.shape[1])
    for broader in BROADER:
        _, first = _find_mode(first, scale.bounds, replace(data, broader=np.asarray(broader)))
    # A fixed seed: the same runs give the same calibration.
    random = np.random.default_rng(0)
    others = AROUND * random.standard_normal((starts, first.size))
    modes = [_find_mode(start, scale.bounds, data) for start in (first, *others)]
    # Of modes that are equal but for rounding the first.
    return min(modes, key=lambda mode: round(mode[0], 6))[1]


def _find_mode(start: Floats, bounds: Bounds, data: Data) -> tuple[float, Floats]:
    """The least surprise near a start, and where it is."""

    def value_and_slope(at: Floats) -> tuple[float, Floats]:
        value, slope = _find_value_and_slope(at, data)
        return float(value), np.asarray(slope)

    inside = np.clip(start, bounds.lb, bounds.ub)
    # Truncated Newton: SciPy's L-BFGS-B waits for BLAS threads, which a busy machine keeps waiting.
    least = minimize(
        value_and_slope, inside, jac=True, method="TNC", bounds=bounds, options={"maxfun": STEPS}
    )
    if not np.isfinite(least.fun):
        raise RunError("the fit found no parameters; are the measured times in seconds?")
    return float(least.fun), np.asarray(least.x)


def _surprise(at: Array, data: Data) -> Array:
    """-ln of the posterior density, up to a constant."""
    values = jnp.exp(data.median + data.root @ at)
    size = len(data.names)
    parameters = dict(zip(data.names, values[:size], strict=True))
    expected = log_times(
        apply_parameters(data.case, data.layers, parameters, values[size:] @ data.of_model)
    )
    errors = data.broader * np.array([[NOISE[part]] for part in PARTS])
    # Where a time was not measured, its log is 0 and its weight as well: no NaN reaches the slope.
    unlikely = jnp.sum(data.weights * _surprise_student((expected - data.logs) / errors))
    # Parameters and the machine's time, then the models' own deviations.
    normal, deviations = jnp.square(at[: size + 1]) / 2, _surprise_student(at[size + 1 :])
    return jnp.sum(normal) + jnp.sum(deviations) + unlikely


def _surprise_student(standard: Array) -> Array:
    """-ln of the density of Student's t, up to a constant."""
    return (FREEDOM + 1) / 2 * jnp.log1p(jnp.square(standard) / FREEDOM)


@compiled(few=True)
def _find_value_and_slope(at: Floats, data: Data) -> tuple[Array, Array]:
    value_and_slope: tuple[Array, Array] = jax.value_and_grad(_surprise)(jnp.asarray(at), data)
    return value_and_slope


def _find_curvature(at: Floats, data: Data) -> Floats:
    """Second derivatives, by central differences of the slope."""
    # Exact ones take as long to compile as the rest of a fit altogether, 6 s, and are no nearer to
    # what is asked for: the errors of the slope are 1e-14 of it, of its difference 1e-8.
    steps = STEP * np.eye(at.size)
    slopes = [
        np.asarray(
            _find_value_and_slope(at + step, data)[1] - _find_value_and_slope(at - step, data)[1]
        )
        for step in steps
    ]
    curvature = np.array(slopes) / (2 * STEP)
    return np.asarray((curvature + curvature.T) / 2)


def _invert(curvature: Floats) -> Floats:
    """The inverse of a curvature that is at least the prior's, 1: no run makes one less sure."""
    # By its axes, and no plain inverse: a direction that runs say nothing of, or a mode at a bound,
    # may have any curvature; the prior's is the least that is true.
    values, axes = np.linalg.eigh(curvature)
    return np.asarray((axes / np.maximum(values, 1.0)) @ axes.T)


def _list_serial_times(
    observations: Observations, train: Mask, factors: Floats, spreads: Floats
) -> dict[str, SerialTime]:
    """The time on one PE of each model that ran."""
    ran = {run.model for run, used in zip(observations.runs, train, strict=True) if used}
    times = zip(observations.models, factors.tolist(), spreads.tolist(), strict=True)
    return {
        model: SerialTime(factor=factor, spread=spread)
        for model, factor, spread in times
        if model in ran
    }
