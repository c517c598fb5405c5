"""Labels of points for learners, in one pass: answers, their slopes, their kinks.

Times [s an epoch], memory [B]; slopes are elasticities, d log y / d log x.
"""

from collections.abc import Mapping
from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from kernels.arrays import AnyArray, Cells
from kernels.blocks.outputs import read_output
from kernels.compiled import compiled, fetch
from kernels.derivatives.elasticities import find_elasticities, find_kinks
from kernels.derivatives.slopes import Slopes
from kernels.namespace import use_numpy, xp
from kernels.oracle.answer import Answer
from kernels.oracle.points import Points, evaluate_points, settle_points, take_points

# Targets with slopes, as attributes of an answer; an epoch's time is the sum of the first two.
TARGETS = {"comp_time": "compute", "comm_time": "communication", "memory": "memory"}
EPOCH = "epoch_time"
# Columns of every row: targets, limits, and the counts that the oracle chose.
ANSWERS = (EPOCH, *TARGETS, "limit", "replicas", "group_size", "segment_count", "global_batch")

# Outputs, and percentiles of them, that a law of epochs is needed for.
TRAINED = ("epochs", "train_time")

Labels = tuple[dict[str, Array], dict[str, Slopes], Array]


def label_points(
    table: Points,
    rows: AnyArray,
    values: Mapping[str, Cells],
    *,
    parameters: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
    marked: bool = False,
) -> Labels:
    """Answers [point] by name, elasticities [point] by target and parameter, marks of kinks.

    rows, values: as `kernels.oracle.points.take_points` has them, or rows with several points
    each; results are of the same dimensions. parameters: in which there are slopes.
    outputs: a cube's variables that are answers, too: percentiles, epochs, the time to the target.
    marked: whether points near a kink are looked for; else none is marked.
    """
    if not table.case.choices:
        return _label_rows(
            table, rows, values, parameters=parameters, outputs=outputs, marked=marked
        )
    # In numpy, ahead of any program: with all choices in it, that of the slopes of a pipeline took
    # twice as long to compile (52 instead of 27 s of two shared cores), and so did the values.
    with use_numpy():
        points = fetch(settle_points(take_points(table, rows, values)))
        if not parameters:
            return fetch(_find_labels(points, parameters, outputs, marked))
    return _label(points, parameters=parameters, outputs=outputs, marked=marked)


def _has_slopes(*_: object, parameters: tuple[str, ...], **__: object) -> bool:
    """Whether programs take long to compile.

    50,000 rows of 75 networks, nothing compiled yet: 65.6 -> 53.0 s of CPU (a run each, 2026-11).
    They run a quarter slower (`kernels.compiled`), which 20 million rows lose again.
    """
    return bool(parameters)


@compiled("parameters", "outputs", "marked", few=_has_slopes)
def _label_rows(
    table: Points,
    rows: AnyArray,
    values: Mapping[str, Cells],
    *,
    parameters: tuple[str, ...],
    outputs: tuple[str, ...],
    marked: bool,
) -> Labels:
    return _find_labels(take_points(table, rows, values), parameters, outputs, marked)


@compiled("parameters", "outputs", "marked", few=_has_slopes)
def _label(
    points: Points, *, parameters: tuple[str, ...], outputs: tuple[str, ...], marked: bool
) -> Labels:
    return _find_labels(points, parameters, outputs, marked)


def _find_labels(
    points: Points, parameters: tuple[str, ...], outputs: tuple[str, ...], marked: bool
) -> Labels:
    """The labels of points that leave nothing to choose."""
    shape = points.shape
    answers = {
        name: xp.broadcast_to(answer, shape)
        for name, answer in _list_answers(evaluate_points(points), outputs).items()
    }
    if not parameters:
        return answers, {}, xp.zeros(shape, bool)
    # Targets have slopes; percentiles, whose draws would be differentiated with them, have none.
    plain = replace(points, case=replace(points.case, uncertainty=None))
    of_fields = find_elasticities(plain, tuple(TARGETS.values()), parameters)
    slopes = {name: of_fields[field] for name, field in TARGETS.items()}
    kinks = jnp.zeros(shape, bool)
    if marked:
        kinks = jnp.asarray(find_kinks(plain, of_fields))
    return answers, {EPOCH: _add_slopes(answers, slopes), **slopes}, kinks


def _list_answers(answer: Answer, outputs: tuple[str, ...]) -> dict[str, Cells]:
    """The part of an answer that is kept, by the names of columns."""
    fields = (answer.epoch_time, answer.compute, answer.communication, answer.memory, answer.limit)
    chosen = (answer.replicas, answer.group, answer.segments, answer.global_batch)
    named = dict(zip(ANSWERS, (*fields, *chosen), strict=True))
    return named | {name: _read_output(answer, name) for name in outputs}


def _read_output(answer: Answer, name: str) -> Cells:
    """One of a cube's variables; NaN where a model has no law of epochs."""
    lacking = name.startswith(TRAINED) and answer.epochs is None
    return xp.full((), xp.nan) if lacking else read_output(answer, name)


def _add_slopes(answers: dict[str, Array], slopes: dict[str, Slopes]) -> Slopes:
    """The elasticities of a sum: those of its parts, by their shares."""
    total = answers[EPOCH]
    parts = ("comp_time", "comm_time")
    return {
        name: sum(
            # A part that is 0 has no slope of its own, and adds none.
            (
                jnp.where(answers[part] == 0, 0.0, answers[part] / total * slopes[part][name])
                for part in parts
            ),
            jnp.zeros_like(total),
        )
        for name in slopes["comp_time"]
    }
