"""Uncertainty: how far the calibrated oracle's times may be off, as spreads of their logarithms.

Three causes add up: the parameters, to first order through the formulas' derivatives along the
directions of their posterior; a model's time on one PE; and the model's own error, which grows for
runs unlike those that were fitted.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import Array

from kernels import calibrated
from kernels.arrays import Cells
from kernels.calibration import Calibration, Uncertainty
from kernels.case import Case
from kernels.compiled import compiled
from kernels.group import slower
from kernels.percentiles import PERCENTILES
from kernels.terms import Terms


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Spread:
    """Standard deviations of the logarithms of the time computing, communicating, and in all."""

    compute: Cells
    communication: Cells
    total: Cells


def spread(case: Case) -> Spread:
    """The spreads of an iteration's times. The case has a calibration, and its uncertainty."""
    calibration, uncertainty = case.calibration, case.uncertainty
    assert calibration is not None  # whoever asks for a spread has a calibrated case
    assert uncertainty is not None
    nowhere = jax.tree.map(lambda value: jnp.zeros_like(jnp.asarray(value)), calibration)
    still = jnp.zeros_like(jnp.asarray(uncertainty.serial_time))
    here = nowhere, still

    def times(offsets: Calibration, serial: Cells) -> tuple[Cells, Cells]:
        return move_times(case, offsets, serial)

    def along(direction: Array) -> tuple[Cells, Cells]:
        # Forward, not in reverse: directions are few, at most one a parameter, and cells are many.
        slope: tuple[Cells, Cells] = jax.jvp(times, here, (Calibration(*direction), still))[1]
        return slope

    of_parameters = jax.vmap(along)(jnp.asarray(uncertainty.directions))
    of_serial = jax.jvp(times, here, (nowhere, jnp.asarray(uncertainty.serial_time)))[1]
    terms = calibrated.iteration_terms(case)
    return _combine(terms, of_parameters, of_serial, _own_errors(terms, case, uncertainty))


def move_times(case: Case, offsets: Calibration, serial: Cells) -> tuple[Cells, Cells]:
    """Seconds an iteration, computing and communicating, with other parameters.

    offsets, serial: of the logarithms of the parameters, and of the time on one PE.
    """
    calibration = case.calibration
    assert calibration is not None  # whoever moves its parameters has some
    # In logarithms: parameters stay positive, and spreads are relative.
    moved: Calibration = jax.tree.map(lambda value, by: value * jnp.exp(by), calibration, offsets)
    slower_work = slower(case.work, jnp.exp(serial))
    terms = calibrated.iteration_terms(replace(case, work=slower_work, calibration=moved))
    return terms.compute, terms.communication


def own_error(terms: Terms, case: Case) -> Cells:
    """The spread of the logarithm of the time in all that is the model's own error alone."""
    assert case.uncertainty is not None  # whoever asks for an error has its size
    errors = _own_errors(terms, case, case.uncertainty)
    return jnp.hypot(*errors) / (terms.compute + terms.communication)


def quantile(time: Cells, sigma: Cells, percent: int) -> Cells:
    """The 10th, 50th or 90th percentile of a time whose logarithm has the spread `sigma`."""
    return jnp.asarray(time * jnp.exp(PERCENTILES[percent] * sigma))


@compiled()
def percentiles(time: Cells, sigma: Cells) -> dict[int, Cells]:
    """All of them, by their percent, for who is outside of compiled programs."""
    return {percent: quantile(time, sigma, percent) for percent in PERCENTILES}


def _own_errors(terms: Terms, case: Case, uncertainty: Uncertainty) -> tuple[Cells, Cells]:
    """The model's own error of the times computing and communicating [s]."""
    work, run = case.work, case.run
    alone = jnp.equal(run.p2, 1)
    computing = jnp.where(alone, uncertainty.serial, uncertainty.group) * terms.compute
    # A spatial group's gradients go through host memory, with the errors of other exchanges.
    rings = jnp.greater(run.p1, 1) & jnp.equal(work.replicated, 0)
    reduced = jnp.where(rings, terms.gradient_exchange, 0.0)
    rest = terms.communication - reduced
    communicating = jnp.hypot(uncertainty.reduce * reduced, uncertainty.exchange * rest)
    return uncertainty.widening * computing, uncertainty.widening * communicating


def _combine(
    terms: Terms,
    of_parameters: tuple[Cells, Cells],
    of_serial: tuple[Cells, Cells],
    errors: tuple[Cells, Cells],
) -> Spread:
    """Independent causes, as parts of the times; 0 where there is no time."""

    def relative(parameters: Cells, serial: Cells, error: Cells, time: Cells) -> Cells:
        variance = jnp.sum(jnp.square(parameters), axis=0) + jnp.square(serial) + error
        # No time has no logarithm: on one PE nothing is communicated, and nothing is unsure of it.
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
