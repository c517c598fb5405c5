"""Uncertainty: how far the calibrated oracle's times may be off, as spreads of their logarithms.

Three causes add up: the parameters, to first order through the formulas' derivatives along the
directions of their posterior; a model's time on one PE; and the model's own error, which grows for
runs unlike those that were fitted.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from kernels import calibrated
from kernels.arrays import AnyArray, Cells
from kernels.calibration import Calibration
from kernels.compute import PE
from kernels.group import GroupWork, slower
from kernels.network import Network
from kernels.run import Options, Run, Terms

# Percentiles of Student's t with 4 degrees of freedom, which the fit takes errors for.
STEPS = {10: -1.5332, 50: 0.0, 90: 1.5332}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Uncertainty:
    """Spreads of logarithms.

    directions [n, parameter, cells]: of the parameters' posterior, independent of each other.
    serial_time: of a model's time on one PE. serial, group, reduce, exchange: errors of computing
    whole models, and divided ones; of the gradients' rings, and of all else that is communicated.
    widening: the factor on these errors.
    """

    directions: AnyArray
    serial_time: Cells
    serial: Cells
    group: Cells
    reduce: Cells
    exchange: Cells
    widening: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Spread:
    """Standard deviations of the logarithms of the time computing, communicating, and in all."""

    compute: Cells
    communication: Cells
    total: Cells


def spread(
    work: GroupWork,
    run: Run,
    network: Network,
    pe: PE,
    known: Calibration,
    options: Options,
    doubt: Uncertainty,
) -> Spread:
    """The spreads of an iteration's times."""

    def times(offsets: Calibration, serial: Cells) -> tuple[Cells, Cells]:
        return moved_times(work, run, network, pe, known, options, offsets, serial)

    nowhere = jax.tree.map(lambda value: jnp.zeros_like(jnp.asarray(value)), known)
    still = jnp.zeros_like(jnp.asarray(doubt.serial_time))
    here = nowhere, still

    def along(direction: Array) -> tuple[Cells, Cells]:
        offsets = Calibration(*direction)
        found: tuple[Cells, Cells] = jax.jvp(times, here, (offsets, still))[1]
        return found

    of_parameters = jax.vmap(along)(jnp.asarray(doubt.directions))
    of_serial = jax.jvp(times, here, (nowhere, jnp.asarray(doubt.serial_time)))[1]
    terms = calibrated.iteration_terms(work, run, network, pe, known, options)
    return _together(terms, of_parameters, of_serial, _errors(terms, work, run, doubt))


def moved_times(
    work: GroupWork,
    run: Run,
    network: Network,
    pe: PE,
    known: Calibration,
    options: Options,
    offsets: Calibration,
    serial: Cells,
) -> tuple[Cells, Cells]:
    """Seconds an iteration, computing and communicating, with other parameters.

    offsets, serial: of the logarithms of the parameters, and of the time on one PE.
    """
    moved: Calibration = jax.tree.map(lambda value, by: value * jnp.exp(by), known, offsets)
    terms = calibrated.iteration_terms(
        slower(work, jnp.exp(serial)), run, network, pe, moved, options
    )
    return terms.compute, terms.communication


def own_error(terms: Terms, work: GroupWork, run: Run, doubt: Uncertainty) -> Cells:
    """The spread of the logarithm of the time in all that is the model's own error alone."""
    return jnp.hypot(*_errors(terms, work, run, doubt)) / (terms.compute + terms.communication)


def quantile(time: Cells, sigma: Cells, percent: int) -> Cells:
    """The 10th, 50th or 90th percentile of a time whose logarithm has the spread `sigma`."""
    return jnp.asarray(time * jnp.exp(STEPS[percent] * sigma))


def _errors(terms: Terms, work: GroupWork, run: Run, doubt: Uncertainty) -> tuple[Cells, Cells]:
    """The model's own error of the times computing and communicating [s]."""
    alone = jnp.equal(run.p2, 1)
    computing = jnp.where(alone, doubt.serial, doubt.group) * terms.compute
    rings = jnp.greater(run.p1, 1) & jnp.equal(work.replicated, 0)
    reduced = jnp.where(rings, terms.gradient_exchange, 0.0)
    rest = terms.communication - reduced
    communicating = jnp.hypot(doubt.reduce * reduced, doubt.exchange * rest)
    return doubt.widening * computing, doubt.widening * communicating


def _together(
    terms: Terms,
    of_parameters: tuple[Cells, Cells],
    of_serial: tuple[Cells, Cells],
    errors: tuple[Cells, Cells],
) -> Spread:
    """Independent causes, as parts of the times; 0 where there is no time."""

    def relative(parameters: Cells, serial: Cells, error: Cells, time: Cells) -> Cells:
        variance = jnp.sum(jnp.square(parameters), axis=0) + jnp.square(serial) + error
        return jnp.where(jnp.greater(time, 0), jnp.sqrt(variance) / time, 0.0)

    compute, communication = (jnp.square(each) for each in errors)
    total = terms.compute + terms.communication
    return Spread(
        compute=relative(of_parameters[0], of_serial[0], compute, terms.compute),
        communication=relative(of_parameters[1], of_serial[1], communication, terms.communication),
        total=relative(
            of_parameters[0] + of_parameters[1],
            of_serial[0] + of_serial[1],
            compute + communication,
            total,
        ),
    )
