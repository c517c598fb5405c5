"""Points: single configurations, not on a grid, with values of their own, and their elasticities.

Cells have one dimension, points, or two: rows of a table and the points of each. Discrete
parameters are looked up in the table, whose cells are all PE counts (and groups, segments) of one
model, data set, system and strategy; continuous parameters get each point's values.

Elasticities, d log y / d log x, are exact. Backward, one field at a time: a point depends only on
its own parameters, so one pass gives the slopes in all of them. At a kink, where a maximum or
minimum changes sides, a slope is that of one side or lies between both; `find_kinks` marks points
near one.
"""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import AnyArray, Cells, Flags, PerStage, xp
from kernels.configuration.answers import Answer
from kernels.configuration.case import Case, Points
from kernels.configuration.places import PLACES, scale_parameters, set_parameters
from kernels.derivatives.slopes import Factors, Slopes, pull_back, push_forward
from kernels.oracle.answer import evaluate, take_best
from kernels.oracle.formulas import Work, find_share, reduce_work
from kernels.work.group import GroupWork
from kernels.work.memory import hold_row_states

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


def find_elasticities(
    points: Points, fields: tuple[str, ...], parameters: tuple[str, ...]
) -> dict[str, Slopes]:
    """Compute d log field / d log parameter [point], by field and parameter.

    fields: attributes of an answer, such as `epoch_time` or `terms.halo_exchange`. parameters: of
    `PLACES`; for those that layers depend on, points need a division. NaN where the field is 0 or
    undefined.
    """
    layered = any(PLACES[name].layered for name in parameters)
    assert points.division is not None or not layered, "layers would be constant"
    # Only the best choice: others may not exist, and their NaN would spread.
    points = settle_points(points)
    shape = points.shape
    reduced, changes = reduce_points(points), _change_work(points, parameters)

    def answer(factors: dict[str, Array]) -> dict[str, Array]:
        work = reduced.case.work
        for name, change in changes.items():
            # The layers' work is linear for small changes of the factors, which are 1.
            work = jax.tree.map(lambda old, by, f=factors[name]: old + (f - 1.0) * by, work, change)
        changed = replace(reduced, case=replace(reduced.case, work=work))
        return dict(zip(fields, _read(_scale(changed, factors), fields), strict=True))

    values, slopes = pull_back(answer, parameters, shape)

    def divide(field: str) -> Slopes:
        defined = values[field] > 0
        value = jnp.where(defined, values[field], 1.0)
        return {
            name: jnp.where(defined, slope / value, jnp.nan)
            for name, slope in slopes[field].items()
        }

    return {field: divide(field) for field in fields}


def _change_work(points: Points, parameters: tuple[str, ...]) -> dict[str, Work]:
    """Compute d work / d log parameter, for parameters that layers depend on."""

    # Forward, since these are one or two and change a few sums over layers. A backward pass through
    # all layers takes 40 times as long as the answers (4096 points of ResNet-50, 2026-11).
    def reduce_scaled(factors: Factors) -> Work:
        return reduce_points(_scale(points, factors)).case.work

    return {
        name: push_forward(reduce_scaled, name)
        for name in parameters
        if PLACES[name].layered and points.division is not None
    }


def find_kinks(points: Points, slopes: Mapping[str, Slopes]) -> Flags:
    """Return whether a field has a kink within 1 % of a parameter [point].

    Compares one-sided differences with the slope. slopes: elasticities by field and parameter, with
    the same parameters for all fields.
    """
    fields = tuple(slopes)
    names = tuple(next(iter(slopes.values())))
    layered = tuple(name for name in names if PLACES[name].layered)
    reduced = reduce_points(points)
    values = jnp.log(jnp.stack(_read(reduced, fields)))
    near = jnp.zeros(values.shape[1:], bool)
    # Parameters that no layer depends on are varied with layers summed once.
    for chosen, varied in ((set(names) - set(layered), reduced), (set(layered), points)):
        if chosen:
            ordered = tuple(sorted(chosen))
            stacked = jnp.stack([jnp.stack([slopes[y][x] for y in fields]) for x in ordered])
            near |= _find_bends(varied, fields, ordered, values, stacked)
    return near


def _find_bends(
    points: Points, fields: tuple[str, ...], names: tuple[str, ...], values: Array, slopes: Array
) -> Flags:
    """Return whether the one-sided differences disagree with the slope in any parameter [point].

    values: logarithms [field, point]. slopes [parameter, field, point].
    """
    step = jnp.log(NEAR)

    def step_aside(which: tuple[Array, Array]) -> Array:
        number, sign = which
        factors = jnp.where(jnp.arange(len(names)) == number, jnp.exp(sign * step), 1.0)
        moved = _read(_scale(points, dict(zip(names, factors, strict=True))), fields)
        return (jnp.log(jnp.stack(moved)) - values) / (sign * step)

    # One parameter and side at a time: one small program instead of twenty-four.
    numbers = jnp.repeat(jnp.arange(len(names)), 2)
    signs = jnp.tile(jnp.array([1.0, -1.0]), len(names))
    aside: Array = jax.lax.map(step_aside, (numbers, signs))
    both = aside.reshape(len(names), 2, *slopes.shape[1:])
    # Comparisons with NaN, for values of 0, are false.
    bends = jnp.abs(both.sum(axis=1) - 2 * slopes) > BEND
    # Exactly at a kink, as of two parameters with equal defaults, the slope is the mean of both.
    curved = jnp.abs(step) * (0.25 + jnp.abs(slopes) * (1 + jnp.abs(slopes)))
    bends |= (jnp.abs(both - slopes[:, None]) > curved[:, None]).any(axis=1)
    return bends.any(axis=(0, 1))


def _read(points: Points, fields: tuple[str, ...]) -> list[Array]:
    """Read fields of the answer, each [point]."""
    answer, shape = evaluate_points(points), points.shape
    return [jnp.broadcast_to(attrgetter(field)(answer), shape) for field in fields]


def _scale(points: Points, factors: Factors) -> Points:
    return replace(points, case=scale_parameters(points.case, factors))
