"""Labels of points for learners, in one pass: answers, slopes and kinks.

Times [s per epoch], memory [B]; slopes are elasticities, d log y / d log x.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from paradl.kernels.arrays import AnyArray, Cells, use_numpy, xp
from paradl.kernels.blocks.outputs import read_output
from paradl.kernels.compiled import compiled, fetch
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Points
from paradl.kernels.derivatives.points import (
    evaluate_points,
    find_slopes,
    settle_points,
    take_points,
)
from paradl.kernels.names.stored import ANSWERS, EPOCH, TARGETS

Labels = tuple[dict[str, AnyArray], dict[str, dict[str, AnyArray]], AnyArray]


def label_points(
    table: Points,
    rows: AnyArray,
    values: Mapping[str, Cells],
    *,
    parameters: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
    marked: bool = False,
) -> Labels:
    """Return answers [point] by name, elasticities [point] by target and parameter, and kinks.

    rows, values: as in `take_points`, which determine the dimensions of the results. parameters:
    with slopes. outputs: further variables of a cube: percentiles, epochs, the
    time to the target. marked: whether to mark points near a kink.
    """
    if table.case.in_numpy:
        with use_numpy():
            return _find_labels(take_points(table, rows, values), parameters, outputs, marked)
    if not table.case.choices:
        return _label(table, rows, values, parameters=parameters, outputs=outputs, marked=marked)
    # In numpy, before any program: with all choices in it, the program of a pipeline's slopes took
    # twice as long to compile (52 instead of 27 s on two shared cores), and so did that of values.
    with use_numpy():
        points = fetch(settle_points(take_points(table, rows, values)))
        if not parameters:
            return fetch(_find_labels(points, parameters, outputs, marked))
    return _label(points, parameters=parameters, outputs=outputs, marked=marked)


def _has_slopes(*_: object, parameters: tuple[str, ...], **__: object) -> bool:
    """True if programs take long to compile: the older emitters then make them in half the time."""
    return bool(parameters)


@compiled("parameters", "outputs", "marked", few=_has_slopes)
def _label(
    table: Points,
    rows: AnyArray | None = None,
    values: Mapping[str, Cells] | None = None,
    *,
    parameters: tuple[str, ...],
    outputs: tuple[str, ...],
    marked: bool,
) -> Labels:
    points = table if rows is None else take_points(table, rows, values or {})
    return _find_labels(points, parameters, outputs, marked)


def _find_labels(
    points: Points, parameters: tuple[str, ...], outputs: tuple[str, ...], marked: bool
) -> Labels:
    """Compute the labels of points without choices."""
    if not parameters:
        return _answer(points, outputs), {}, xp.zeros(points.shape, bool)
    # Percentiles have no slopes, and differentiating their draws would be wasted.
    plain = replace(points, case=replace(points.case, uncertainty=None))
    unsure = points.case.uncertainty is not None
    answers, slopes, kinks = find_slopes(
        plain,
        partial(_list_answers, outputs=() if unsure else outputs),
        tuple(TARGETS),
        parameters,
        marked=marked,
    )
    if unsure:
        answers = _answer(points, outputs)
    return answers, {EPOCH: _add_slopes(answers, slopes), **slopes}, kinks


def _answer(points: Points, outputs: tuple[str, ...]) -> dict[str, AnyArray]:
    """Compute the answers [point], by column."""
    answers = _list_answers(evaluate_points(points), outputs)
    return {name: xp.broadcast_to(answer, points.shape) for name, answer in answers.items()}


def _list_answers(answer: Answer, outputs: tuple[str, ...]) -> dict[str, Cells]:
    """Return the labels in an answer, by column."""
    fields = (answer.epoch_time, answer.compute, answer.communication, answer.memory, answer.limit)
    chosen = (answer.replicas, answer.group, answer.segments, answer.global_batch)
    named = dict(zip(ANSWERS, (*fields, *chosen), strict=True))
    return named | {name: read_output(answer, name) for name in outputs}


def _add_slopes(
    answers: dict[str, AnyArray], slopes: dict[str, dict[str, AnyArray]]
) -> dict[str, AnyArray]:
    """Return the elasticities of the epoch's time: those of its parts, weighted by their shares."""
    total = answers[EPOCH]
    parts = ("comp_time", "comm_time")
    return {
        name: sum(
            # The slope of a part that is 0 is NaN, and contributes nothing.
            (
                xp.where(answers[part] == 0, 0.0, answers[part] / total * slopes[part][name])
                for part in parts
            ),
            xp.zeros_like(total),
        )
        for name in slopes["comp_time"]
    }
