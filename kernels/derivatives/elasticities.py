"""Exact elasticities, d log y / d log x, of an answer's fields in the continuous parameters.

Backward, one field at a time: a point depends only on its own parameters, so one pass gives the
slopes in all of them. At a kink, where a maximum or minimum changes sides, a slope is that of one
side or lies between both; `find_kinks` marks points near one.
"""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Flags
from kernels.configuration.places import PLACES, scale_parameters
from kernels.derivatives.slopes import Factors, Slopes, pull_back, push_forward
from kernels.oracle.formulas import Work
from kernels.oracle.points import Points, evaluate_points, reduce_points, settle_points

# A point is near a kink if the kink is within this factor of a parameter.
NEAR = 1.01
# Least difference of a kink's two slopes. For smooth functions the mean of both one-sided
# differences is the slope, up to a sixth of the third derivative times log(NEAR) squared, at most
# 2e-5 for sums of powers from -1 to 1.
BEND = 1e-3


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
