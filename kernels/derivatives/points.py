"""Points: single configurations, not on a grid, with values of their own, and their elasticities.

Cells have one dimension, points, or two: rows of a table and the points of each. Discrete
parameters are looked up in the table, whose cells are all PE counts (and groups, segments) of one
model, data set, system and strategy; continuous parameters get each point's values.

Elasticities, d log y / d log x, are exact: forward, one parameter at a time. At a kink, where a
maximum or minimum changes sides, a slope is that of one side or lies between both; differences to
both sides mark points near one.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from paradl.kernels.arrays import AnyArray, Cells, PerStage, xp
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case, Points, Work
from paradl.kernels.configuration.places import PLACES, scale_parameters, set_parameters
from paradl.kernels.derivatives.differences import compare_answers, find_elasticities
from paradl.kernels.oracle.answer import evaluate, take_best
from paradl.kernels.oracle.formulas import find_share, reduce_work
from paradl.kernels.work.group import GroupWork
from paradl.kernels.work.memory import hold_row_states

# A point is near a kink if the kink is within this factor of a parameter.
NEAR = 1.01
# Least difference of a kink's two slopes. For smooth functions the mean of both one-sided
# differences is the slope, up to a sixth of the third derivative times log(NEAR) squared, at most
# 2e-5 for sums of powers from -1 to 1.
BEND = 1e-3


def take_points(table: Points, rows: AnyArray, values: Mapping[str, Cells]) -> Points:
    """Take points at `rows` of a table, with values of parameters by name.

    rows, values: [point] each; or [row, 1] and [row, point] for several points per row, whose
    lookups and everything that depends only on them are then done once.
    """
    dims = (1,) * xp.ndim(rows)

    def take(leaf: AnyArray) -> Array:
        whole = xp.asarray(leaf)
        # The last dimension is the cells'; constants and size 1 have a single value.
        if whole.ndim == 0:
            return whole
        return whole[..., rows] if whole.shape[-1] > 1 else whole.reshape(*whole.shape[:-1], *dims)

    taken: Points = jax.tree.map(take, table)
    # Also right for tables of one row, whose leaves have size 1.
    shape = xp.broadcast_shapes(xp.shape(rows), *map(xp.shape, values.values()))
    # Dimensions of choices come before those of the points.
    choices = (1,) * len(taken.case.choices)
    p = xp.broadcast_to(taken.case.run.p, (*choices, *shape))
    case = replace(taken.case, run=replace(taken.case.run, p=p))
    aligned = {
        name: xp.reshape(value, (*choices, *xp.shape(value))) for name, value in values.items()
    }
    return replace(taken, case=set_parameters(case, aligned))


def evaluate_points(points: Points) -> Answer:
    """Compute the answers [point], differentiable in every parameter of `PLACES`; with a division
    also in those that layers' times depend on.
    """
    return evaluate(reduce_points(points).case)


def reduce_points(points: Points) -> Points:
    """Sum the layers by each point's values; the result has no division."""
    case, division = points.case, points.division
    if division is None:
        return points
    division = replace(division, pe=case.pe, delta=case.run.delta)
    return Points(replace(case, work=_keep_fullest(reduce_work(division), case)))


def settle_points(points: Points) -> Points:
    """Replace each point's choices by the best one."""
    if not points.case.choices:
        return points
    # Uncertainty does not affect the choice, and takes 32 times as long as the times.
    case = replace(reduce_points(points).case, uncertainty=None)
    best = take_best(case, points)
    return replace(best, case=replace(best.case, choices=()))


def _keep_fullest(work: Work, case: Case) -> Work:
    """Keep only the fullest stage, which is known since each point has one batch."""
    batch = case.run.batch
    both = xp.broadcast_arrays(work.activations, work.parameters, xp.asarray(batch)[None])
    activations, parameters, samples = both
    share = find_share(case)
    held = samples * activations + (parameters if share is None else share * parameters)
    rows = work.row_states if isinstance(work, GroupWork) else None
    if rows is not None:
        held = held + hold_row_states(rows, batch)
    fullest = xp.argmax(held, axis=0)[None]

    def take(values: PerStage) -> PerStage:
        return xp.take_along_axis(xp.broadcast_to(values, xp.shape(held)), fullest, axis=0)

    kept = replace(work, activations=take(activations), parameters=take(parameters))
    return kept if rows is None else replace(kept, row_states=jax.tree.map(take, rows))


def find_slopes(
    points: Points,
    read: Callable[[Answer], dict[str, Cells]],
    targets: tuple[str, ...],
    parameters: tuple[str, ...],
    *,
    marked: bool = False,
) -> tuple[dict[str, AnyArray], dict[str, dict[str, AnyArray]], AnyArray]:
    """Return answers [point] by name, elasticities [point] by target and parameter, and kinks.

    points: without choices (`settle_points`): others may not exist, and their NaN would spread.
    read: reads answers by name. targets: those of them with elasticities d log y / d log x, NaN
    where they are 0 or undefined. parameters: of `PLACES`, at least one; for those that layers
    depend on, points need a division. marked: whether to mark points where a target has a kink
    within 1 % of a parameter; otherwise none is.
    """
    layered = tuple(name for name in parameters if PLACES[name].layered)
    if points.case.in_numpy:
        return _find_differences(points, read, targets, parameters, marked)
    assert points.division is not None or not layered, "layers would be constant"
    others = tuple(name for name in parameters if name not in layered)
    answers: dict[str, AnyArray] = {}
    slopes: dict[str, dict[str, AnyArray]] = {name: {} for name in targets}
    near: AnyArray = jnp.zeros(points.shape, bool)
    # Parameters that no layer depends on are varied with layers summed once.
    for names, varied in ((others, reduce_points(points)), (layered, points)):
        if names:
            found, of_these, bends = _vary(varied, read, targets, names, marked)
            answers, near = answers or found, near | bends
            for number, target in enumerate(targets):
                slopes[target] |= dict(zip(names, of_these[:, number], strict=True))
    return answers, slopes, near


def _find_differences(
    points: Points,
    read: Callable[[Answer], dict[str, Cells]],
    targets: tuple[str, ...],
    parameters: tuple[str, ...],
    marked: bool,
) -> tuple[dict[str, AnyArray], dict[str, dict[str, AnyArray]], AnyArray]:
    """Return the same as `find_slopes` by differences, towards more of a parameter."""

    def read_whole(answer: Answer) -> dict[str, AnyArray]:
        return {name: xp.broadcast_to(y, points.shape) for name, y in read(answer).items()}

    def stack(found: Mapping[str, AnyArray]) -> AnyArray:
        return xp.stack([found[name] for name in targets])

    answers = read_whole(evaluate(points.case))
    here = {name: answers[name] for name in targets}
    found = {name: find_elasticities(points.case, read_whole, here, name) for name in parameters}
    slopes = {t: {name: found[name][t] for name in parameters} for t in targets}
    if not marked:
        return answers, slopes, xp.zeros(points.shape, bool)
    # On either side, of these parameters: [side, parameter, target, point].
    ratios = [
        [stack(compare_answers(points.case, read_whole, here, name, by)) for name in parameters]
        for by in (NEAR, 1 / NEAR)
    ]
    up, down = xp.log(xp.asarray(ratios)) / xp.log(NEAR)
    aside = xp.stack([up, -down])
    return answers, slopes, _find_bends(aside, xp.stack([*map(stack, found.values())]))


def _vary(
    points: Points,
    read: Callable[[Answer], dict[str, Cells]],
    targets: tuple[str, ...],
    names: tuple[str, ...],
    marked: bool,
) -> tuple[dict[str, AnyArray], AnyArray, AnyArray]:
    """Compute answers [point], elasticities [parameter, target, point], and kinks [point]."""
    towards, step = jnp.eye(len(names)), jnp.log(NEAR)
    sides = jnp.array([0.0, 1.0, -1.0] if marked else [0.0])
    # [side, parameter, factor]
    factors = jnp.exp(step * sides[:, None, None] * towards)

    def answer(scales: Array) -> tuple[Array, dict[str, Array]]:
        case = scale_parameters(points.case, dict(zip(names, scales, strict=True)))
        answers = {
            name: jnp.broadcast_to(values, points.shape)
            for name, values in read(evaluate_points(replace(points, case=case))).items()
        }
        return jnp.stack([answers[name] for name in targets]), answers

    def look(at: tuple[Array, Array]) -> tuple[Array, Array, dict[str, Array]]:
        place, change = at
        return jax.jvp(answer, (place,), (change,), has_aux=True)

    # In a loop, a program holds the formulas and their derivatives once. Backward, and with answers
    # and differences apart, the three programs of examples/surrogate.yaml took 18.6 instead of
    # 7.8 s of CPU to trace and compile, and 40 instead of 37 ms to run for 4096 rows each.
    places = (factors.reshape(-1, len(names)), jnp.tile(towards, (len(sides), 1)))
    values, changes, answers = jax.lax.map(look, places)
    values, changes = (
        found.reshape(len(sides), len(names), *found.shape[1:]) for found in (values, changes)
    )
    here = values[0]
    slopes = jnp.where(here > 0, changes[0] / jnp.where(here > 0, here, 1.0), jnp.nan)
    # On either side, of these parameters: [side, parameter, target, point].
    aside = jnp.log(values[1:] / here) / (step * sides[1:]).reshape(-1, *[1] * here.ndim)
    return {name: of[0] for name, of in answers.items()}, slopes, _find_bends(aside, slopes)


def _find_bends(aside: AnyArray, slopes: AnyArray) -> AnyArray:
    """Return whether the one-sided differences disagree with the slope in any parameter [point].

    aside: differences [side, parameter, target, point], of no side or two. slopes [parameter,
    target, point].
    """
    # Comparisons with NaN, for values of 0, are false.
    bends = xp.abs(aside.mean(axis=0) - slopes) > BEND / 2
    # Exactly at a kink, as of two parameters with equal defaults, the slope is the mean of both.
    curved = xp.log(NEAR) * (0.25 + xp.abs(slopes) * (1 + xp.abs(slopes)))
    bends |= (xp.abs(aside - slopes) > curved).any(axis=0)
    return bends.any(axis=(0, 1))
