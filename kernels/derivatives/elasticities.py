"""Elasticities: d log y / d log x of an answer's fields in the continuous parameters, exactly.

Backward, a field at a time: each point depends on its own parameters alone, so that one walk gives
the slopes in all of them. At a kink, where a maximum or a minimum changes sides, a slope is one of
the two sides' or lies between them; `find_kinks` marks points that are near one.
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

# How far from a kink a point is near it: a parameter times or over so much.
NEAR = 1.01
# Difference of a kink's two slopes that tells. What is smooth bends to both sides alike: the mean
# of both differences is its slope, but for a sixth of its third derivative times log(NEAR) squared,
# which of sums of powers from -1 to 1 is at most 2e-5.
BEND = 1e-3


def find_elasticities(
    points: Points, fields: tuple[str, ...], parameters: tuple[str, ...]
) -> dict[str, Slopes]:
    """d log field / d log parameter [point], without a unit, by field and parameter.

    fields: attributes of an answer, such as `epoch_time` or `terms.halo_exchange`. parameters: of
    `PLACES`; for those that layers depend on, points need a division. NaN where the
    field is 0 or not defined: its logarithm has no slope.
    """
    layered = any(PLACES[name].layered for name in parameters)
    assert points.division is not None or not layered, "layers would be taken for constant"
    # The best has the slope of the choice that is the best; others may have none, where they do not
    # exist, and NaN would spread from them.
    points = settle_points(points)
    shape = points.shape
    reduced, changes = reduce_points(points), _change_work(points, parameters)

    def answer(factors: dict[str, Array]) -> dict[str, Array]:
        work = reduced.case.work
        for name, change in changes.items():
            # The layers' work is linear in small changes of the factors, which are 1.
            work = jax.tree.map(lambda old, by, f=factors[name]: old + (f - 1.0) * by, work, change)
        there = replace(reduced, case=replace(reduced.case, work=work))
        return dict(zip(fields, _read(_scale(there, factors), fields), strict=True))

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
    """d work / d log parameter, by parameter that layers depend on."""

    # Forward: one or two of them, felt in a few sums over the layers. To walk back through all
    # layers takes 40 times as long as the answers (4096 points of ResNet-50, 2026-11).
    def reduce_scaled(factors: Factors) -> Work:
        return reduce_points(_scale(points, factors)).case.work

    return {
        name: push_forward(reduce_scaled, name)
        for name in parameters
        if PLACES[name].layered and points.division is not None
    }


def find_kinks(points: Points, slopes: Mapping[str, Slopes]) -> Flags:
    """Whether any field has a kink within 1 % of a parameter [point], in those that it has slopes
    in: the differences to both sides are held against the slope.

    slopes: elasticities by parameter, by field; of each field the same parameters.
    """
    fields = tuple(slopes)
    names = tuple(next(iter(slopes.values())))
    layered = tuple(name for name in names if PLACES[name].layered)
    reduced = reduce_points(points)
    values = jnp.log(jnp.stack(_read(reduced, fields)))
    near = jnp.zeros(values.shape[1:], bool)
    # What no layer depends on is varied with the layers reduced once.
    for some, varied in ((tuple(set(names) - set(layered)), reduced), (layered, points)):
        if some:
            of_some = jnp.stack([jnp.stack([slopes[y][x] for y in fields]) for x in sorted(some)])
            near |= _find_bends(varied, fields, tuple(sorted(some)), values, of_some)
    return near


def _find_bends(
    points: Points, fields: tuple[str, ...], names: tuple[str, ...], values: Array, slopes: Array
) -> Flags:
    """Whether the way to both sides of any of these parameters has another mean than the slope.

    values: logarithms [field, point]; slopes [parameter, field, point].
    """
    step = jnp.log(NEAR)

    def step_aside(which: tuple[Array, Array]) -> Array:
        number, sign = which
        factors = jnp.where(jnp.arange(len(names)) == number, jnp.exp(sign * step), 1.0)
        there = _read(_scale(points, dict(zip(names, factors, strict=True))), fields)
        return (jnp.log(jnp.stack(there)) - values) / (sign * step)

    # One parameter after the other, to each side: by one small program, and not by twenty-four.
    numbers = jnp.repeat(jnp.arange(len(names)), 2)
    signs = jnp.tile(jnp.array([1.0, -1.0]), len(names))
    aside: Array = jax.lax.map(step_aside, (numbers, signs))
    both = aside.reshape(len(names), 2, *slopes.shape[1:])
    # NaN, of what is 0, is no bend.
    bends = jnp.abs(both.sum(axis=1) - 2 * slopes) > BEND
    # Just at a kink, as of two parameters that are equal by default, the slope is the sides' mean.
    curved = jnp.abs(step) * (0.25 + jnp.abs(slopes) * (1 + jnp.abs(slopes)))
    bends |= (jnp.abs(both - slopes[:, None]) > curved[:, None]).any(axis=1)
    return bends.any(axis=(0, 1))


def _read(points: Points, fields: tuple[str, ...]) -> list[Array]:
    """Fields of the answer, each [point]."""
    answer, shape = evaluate_points(points), points.shape
    return [jnp.broadcast_to(attrgetter(field)(answer), shape) for field in fields]


def _scale(points: Points, factors: Factors) -> Points:
    return replace(points, case=scale_parameters(points.case, factors))
