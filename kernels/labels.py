"""Labels: what a learner is given of each point, in one pass: answers, their slopes, their kinks.

Times [s an epoch], memory [B]; slopes are elasticities, d log y / d log x.
"""

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from kernels.arrays import AnyArray, Cells
from kernels.compiled import compiled
from kernels.elasticities import Slopes, find_elasticities, find_kinks
from kernels.oracle import Answer
from kernels.points import Points, evaluate_points, take_points

# What is differentiated, as attributes of an answer; an epoch's time is the sum of the first two.
TARGETS = {"comp_time": "compute", "comm_time": "communication", "memory": "memory"}
EPOCH = "epoch_time"
# By the names of columns: targets, limits, and what the oracle chose where a strategy left it.
ANSWERS = (EPOCH, *TARGETS, "limit", "replicas", "group_size", "segment_count", "global_batch")


@compiled("parameters", "marked")
def label_points(
    table: Points,
    rows: AnyArray,
    values: Mapping[str, Cells],
    *,
    parameters: tuple[str, ...] = (),
    marked: bool = False,
) -> tuple[dict[str, Array], dict[str, Slopes], Array]:
    """Answers [point] by name, elasticities [point] by target and parameter, marks of kinks.

    rows, values: as `kernels.points.take_points` has them, which may also be rows with several
    points each; results are of the same dimensions. parameters: in which there are slopes.
    marked: whether points near a kink are looked for; else none is marked.
    """
    points = take_points(table, rows, values)
    shape = points.shape
    answers = {
        name: jnp.broadcast_to(each, shape)
        for name, each in _list_answers(evaluate_points(points)).items()
    }
    if not parameters:
        return answers, {}, jnp.zeros(shape, bool)
    of_fields = find_elasticities(points, tuple(TARGETS.values()), parameters)
    slopes = {name: of_fields[field] for name, field in TARGETS.items()}
    kinks = jnp.zeros(shape, bool)
    if marked:
        kinks = jnp.asarray(find_kinks(points, of_fields))
    return answers, {EPOCH: _add_slopes(answers, slopes), **slopes}, kinks


def _list_answers(answer: Answer) -> dict[str, Cells]:
    """What is kept of an answer, by the names of columns."""
    fields = (answer.epoch_time, answer.compute, answer.communication, answer.memory, answer.limit)
    chosen = (answer.replicas, answer.group, answer.segments, answer.global_batch)
    return dict(zip(ANSWERS, (*fields, *chosen), strict=True))


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
