"""Density: how likely parameters of a machine are, given measured runs, and its slope.

Errors of the logarithms of total, compute and communication follow Student's t, so that a congested
run does not bend the rest. A run with both parts measured counts by these only, since its total is
their sum. Parameters have log-normal priors. So do the models' times on one PE: the logarithm of a
network's factor is the machine's (normal) plus the network's own deviation (Student's t), so that
one network that is far off, because of slow input say, does not move the machine's factor.

Coordinates are (ln value - ln median) / spread of the prior: of the parameters, of the machine's
time, and of each model's deviation from it.
"""

from collections.abc import Mapping
from dataclasses import field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paradl.kernels.arrays import STATIC, Cells, pytree, xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.stored import FREEDOM
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.work.compute import without_launches

NANOSECOND = 1e-9  # keeps the logarithm of 0 s finite

# Scales of the errors of total, compute and communication: communication suffers from other
# traffic, compute does not, and totals are measured best. Fitting the scales made predictions of
# left-out runs less accurate.
NOISE = (0.03, 0.06, 0.2)


@pytree
class LayerWork:
    """Times by the roofline, and of the measured pass.

    sample [s per sample, run], fixed [s per pass, run]: of a PE's part of the layers, or of a
    pipeline's largest stage. whole [s, run], launches [1, run]: of a pass of b0 samples through the
    whole network. measured [s, run]: of the same pass, 0 without a profile.
    """

    sample: Cells
    fixed: Cells
    whole: Cells
    launches: Cells
    measured: Cells


@pytree
class FitData:
    """Priors, and runs along the last dimension of every array.

    broader: factor on the errors' scales. median: ln of the priors' medians. root [parameter and
    model, coordinate]: square root of the priors' covariance. of_model [model, run]: 1 for the
    model that ran, else 0. logs [part, run]: of the measured seconds; parts as in `log_times`.
    weights [part, run]: 1 where they count. names: of the parameters.
    """

    broader: Cells
    median: Floats
    root: Floats
    case: Case
    layers: LayerWork
    of_model: Floats
    logs: Floats
    weights: Floats
    names: tuple[str, ...] = field(metadata=STATIC)


@compiled(numpy=True)
def apply_parameters(
    case: Case, layers: LayerWork, parameters: Mapping[str, Cells], factors: Cells
) -> Case:
    """Return the runs on a machine with these parameters, compute slower by `factors` [run]."""
    measured = xp.where(layers.measured > 0, layers.measured, 1.0)
    device = without_launches(measured, parameters["layer_overhead"] * layers.launches)
    slowdown = xp.where(layers.measured > 0, device / layers.whole, 1.0)
    return replace(
        case,
        software=replace(case.software, **parameters),
        work=replace(
            case.machine_work,
            forward_backward=factors * slowdown * layers.sample,
            fixed=factors * slowdown * layers.fixed,
        ),
    )


@compiled(numpy=True)
def log_times(case: Case) -> Array:
    """Return ln of seconds per iteration [part, run]: total, compute, communication."""
    times = time_iteration(case)
    comp, comm = times.compute, times.communication
    return xp.log(xp.stack([comp + comm, comp, comm]) + NANOSECOND)


def _surprise(at: Array, data: FitData) -> Array:
    values = jnp.exp(data.median + data.root @ at)
    size = len(data.names)
    parameters = dict(zip(data.names, values[:size], strict=True))
    expected = log_times(
        apply_parameters(data.case, data.layers, parameters, values[size:] @ data.of_model)
    )
    errors = data.broader * np.array(NOISE)[:, None]
    # Unmeasured times have a log and a weight of 0, so that no NaN reaches the slope.
    unlikely = jnp.sum(data.weights * _surprise_student((expected - data.logs) / errors))
    # Parameters and the machine's time are normal, the models' deviations Student's t.
    normal, deviations = jnp.square(at[: size + 1]) / 2, _surprise_student(at[size + 1 :])
    return jnp.sum(normal) + jnp.sum(deviations) + unlikely


def _surprise_student(standard: Array) -> Array:
    """Return -ln of the density of Student's t, up to a constant."""
    return (FREEDOM + 1) / 2 * jnp.log1p(jnp.square(standard) / FREEDOM)


@compiled(few=True)
def find_surprise(at: Floats, data: FitData) -> tuple[Array, Array]:
    """Return -ln of the posterior density, up to a constant, and its slope [coordinate]."""
    value_and_slope: tuple[Array, Array] = jax.value_and_grad(_surprise)(jnp.asarray(at), data)
    return value_and_slope
