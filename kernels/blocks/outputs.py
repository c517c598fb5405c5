"""Outputs: what a cube stores of an answer, by name.

Computed in double precision and kept in single: rounded once, an answer is the same however a cube
is cut into blocks, and whatever order of operations the compiler then finds best.

Elasticities, d log y / d log x, are exact. Forward, one parameter at a time with all its outputs,
so that parts of an answer keep their few dimensions. (Points have their own values of every
parameter: `kernels.derivatives.points`.)
"""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paradl.kernels.arrays import LIMITS, AnyArray, Cells, use_numpy, xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.places import PLACES, scale_parameters
from paradl.kernels.derivatives.differences import find_elasticities, round_elasticity
from paradl.kernels.derivatives.slopes import Factors, push_forward
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.kernels.names.statistics import SUMMARISED
from paradl.kernels.names.stored import ELASTIC, STORED, split_elasticity
from paradl.kernels.oracle.answer import Invariants, evaluate
from paradl.kernels.oracle.uncertainty import quantile

Outputs = dict[str, AnyArray]
# Parts of a case, and fields of them.
Fields = dict[str, dict[str, Array]]
# Variables that need a law of epochs.
TRAINED = ("epochs", "train_time")


def _suits_numpy(case: Case, *, names: tuple[str, ...]) -> bool:
    """True unless derivatives are asked for, which numpy has not."""
    return case.in_numpy or not any(map(split_elasticity, names))


@compiled("names", numpy=_suits_numpy)
def compute_outputs(case: Case, *, names: tuple[str, ...]) -> Outputs:
    """Return what a block stores, and no more: the compiler drops the rest."""
    return select_outputs(case, names)


def select_outputs(
    case: Case, names: tuple[str, ...], invariants: Invariants | None = None
) -> Outputs:
    """Return outputs as they are stored, of size 1 along dimensions where they do not vary."""
    if not any(map(_split_percentile, names)):
        # Most of a program would be spreads, which are traced even if nothing reads them.
        case = replace(case, uncertainty=None)
    answer = evaluate(case, invariants)
    slopes = find_output_slopes(case, names)
    return {
        name: _as_stored(name, slopes[name] if name in slopes else read_output(answer, name))
        for name in names
    }


def read_output(answer: Answer, name: str) -> Cells:
    """Return a variable of the cube from an answer, except for elasticities.

    NaN if it needs a law of epochs and the model has none.
    """
    if answer.epochs is None and _is_trained(name):
        return xp.full_like(answer.epoch_time, xp.nan)
    if percentile := _split_percentile(name):
        return _percentile(answer, *percentile)
    if name in EVERY_TERM and not hasattr(answer.terms, name):
        # Layouts have no halo exchange, others no experts: nothing, where there are times.
        return xp.where(xp.isnan(answer.compute), xp.nan, 0.0)
    value: Cells = attrgetter(STORED[name])(answer)
    return value


def _is_trained(name: str) -> bool:
    """True if an output needs a law of epochs."""
    time, _ = _split_percentile(name) or split_elasticity(name) or (name, None)
    return time in TRAINED


def _split_percentile(name: str) -> tuple[str, int] | None:
    """Return the time and the percent of `epoch_time_p90` and the like; None for others."""
    time, _, percent = name.rpartition("_p")
    return (time, int(percent)) if percent.isdigit() else None


def _percentile(answer: Answer, time: str, percent: int) -> Cells:
    """Return a percentile of one of the times."""
    assert answer.spread is not None  # the spec's check: only a calibrated oracle has any
    times = {
        "comp_time": (answer.compute, answer.spread.compute),
        "comm_time": (answer.communication, answer.spread.communication),
        "epoch_time": (answer.epoch_time, answer.spread.total),
    }
    if answer.train_spread is not None:
        times["train_time"] = (answer.train_time, answer.train_spread)
    return quantile(*times[time], percent)


def _as_stored(name: str, values: Cells) -> AnyArray:
    # Two bytes hold all flags. Of times, single precision has more digits than are right.
    return xp.asarray(values).astype(LIMITS if name == "limit" else xp.float32)


def list_summarised(case: Case) -> tuple[str, ...]:
    """List the outputs that a summary reads."""
    return SUMMARISED if case.training is None else (*SUMMARISED, "epochs")


def count_alone(case: Case, rank: int) -> AnyArray | None:
    """Return epochs on one PE, with the rank of cells, without dimensions of choices."""
    if case.training is None:
        return None
    epochs = xp.asarray(case.training.count_epochs(case.run.batch_alone))
    return epochs.reshape(epochs.shape[epochs.ndim - rank :])


def find_output_slopes(case: Case, names: tuple[str, ...]) -> dict[str, AnyArray]:
    """Return the outputs that are elasticities [cells], without a unit, by name.

    NaN if the configuration cannot exist, and for a time of 0, which has no logarithm. Of choices,
    those of the best. Slopes in parameters that layers depend on need the case's `layer_slopes`.
    """
    wanted: dict[str, dict[str, str]] = {}
    for name in names:
        parts = split_elasticity(name)
        if parts is not None and not (case.training is None and _is_trained(name)):
            wanted.setdefault(parts[1], {})[name] = ELASTIC[parts[0]]
    # No slope reads the spreads, but they would be traced and differentiated: best, percentiles and
    # a slope of eight axes take 4.4 instead of 6.9 s of CPU to trace.
    case = replace(case, uncertainty=None)
    if case.in_numpy and wanted:
        return _difference(case, evaluate(case), wanted)
    slopes: dict[str, AnyArray] = {}
    for parameter, fields in wanted.items():
        values, changes = _push_forward(case, parameter, fields)
        slopes |= {name: _divide(changes[name], values[name]) for name in fields}
    return slopes


def _difference(
    case: Case, answer: Answer, wanted: Mapping[str, Mapping[str, str]]
) -> dict[str, AnyArray]:
    """Return elasticities by differences. wanted: fields of the answer, by parameter and output."""
    slopes: dict[str, AnyArray] = {}
    for parameter, fields in wanted.items():

        def read(answer: Answer, fields: Mapping[str, str] = fields) -> dict[str, AnyArray]:
            return {name: np.asarray(attrgetter(of)(answer)) for name, of in fields.items()}

        found = find_elasticities(case, read, read(answer), parameter)
        slopes |= {name: np.asarray(round_elasticity(slope)) for name, slope in found.items()}
    return slopes


def differentiate_epoch(case: Case, *, parameters: tuple[str, ...]) -> tuple[AnyArray, AnyArray]:
    """Return the time of an epoch [s] [cells], and d time / d log parameter [parameter, cells]."""
    if not case.in_numpy:
        return _differentiate_epoch(case, parameters=parameters)
    with use_numpy():
        answer = evaluate(case)
        slopes = _difference(case, answer, {name: {name: "epoch_time"} for name in parameters})
        changes = np.stack([slopes[name] for name in parameters]) * answer.epoch_time
        return np.asarray(answer.epoch_time), changes


@compiled("parameters")
def _differentiate_epoch(case: Case, *, parameters: tuple[str, ...]) -> tuple[Array, Array]:
    directions = [_find_direction(case, name) for name in parameters]
    ones = jnp.ones(len(parameters))

    def time(factors: Array) -> Array:
        moved = case
        for number, direction in enumerate(directions):
            for part, fields in direction.items():
                old = getattr(moved, part)
                new = {
                    field: getattr(old, field) + (factors[number] - 1.0) * slope
                    for field, slope in fields.items()
                }
                moved = replace(moved, **{part: replace(old, **new)})
        return jnp.asarray(evaluate(moved).epoch_time)

    # All directions and the time in one program: alone, each takes as long to compile.
    def push(along: Array) -> tuple[Array, Array]:
        pushed: tuple[Array, Array] = jax.jvp(time, (ones,), (along,))
        return pushed

    both: tuple[Array, Array] = jax.vmap(push, out_axes=(None, 0))(jnp.eye(len(parameters)))
    return both


def _push_forward(
    case: Case, parameter: str, fields: Mapping[str, str]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return fields of the answer and their changes with a parameter's logarithm, by output."""

    def answer(changed: Fields) -> dict[str, Array]:
        parts = {part: replace(getattr(case, part), **new) for part, new in changed.items()}
        answers = evaluate(replace(case, **parts))
        return {name: jnp.asarray(attrgetter(field)(answers)) for name, field in fields.items()}

    slopes = _find_direction(case, parameter)
    # The numbers of which the answers are made, so that the compiler computes both once.
    here = {
        part: {field: jnp.asarray(getattr(getattr(case, part), field)) for field in some}
        for part, some in slopes.items()
    }
    values: dict[str, Array]
    changes: dict[str, Array]
    values, changes = jax.jvp(answer, (here,), (slopes,))
    return values, changes


def _find_direction(case: Case, parameter: str) -> Fields:
    """Return the changes of a case's fields with the logarithm of a parameter."""
    place = PLACES[parameter]

    def scale(factors: Factors) -> Array:
        scaled = scale_parameters(case, factors)
        return jnp.asarray(getattr(getattr(scaled, place.part), place.field))

    direction: Fields = {place.part: {place.field: push_forward(scale, parameter)}}
    if place.layered:
        direction["work"] = {
            field: jnp.asarray(slope) for field, slope in case.layer_slopes[parameter].items()
        }
    return direction


def _divide(change: AnyArray, value: AnyArray) -> AnyArray:
    defined = value > 0
    slope = xp.where(defined, change / xp.where(defined, value, 1.0), xp.nan)
    return xp.asarray(round_elasticity(slope))
