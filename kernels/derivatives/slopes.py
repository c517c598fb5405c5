"""Slopes in parameters' factors, by name, where all factors are 1: d y / d log x is d y / d factor.

By JAX forward, one parameter at a time: the cost does not depend on the number of results. Or, of
answers that numpy gives and of one cell's, by differences: a step goes up only, so that at a kink
the slope is that towards more of a parameter. Times have 16 digits, which leaves nine for slopes.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paradl.kernels.arrays import AnyArray, Cells, xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.places import PLACES, scale_bounded, scale_parameters
from paradl.kernels.names.arrays import Floats
from paradl.kernels.oracle.answer import evaluate
from paradl.kernels.oracle.formulas import reduce_work
from paradl.kernels.work.division import Division

Tree = TypeVar("Tree")
Factors = dict[str, Array]


def push_forward(function: Callable[[Factors], Tree], name: str) -> Tree:
    """Return d y / d log parameter of all results of a function of the parameter's factor."""
    one = jnp.ones(())
    slopes: Tree
    _, slopes = jax.jvp(lambda factor: function({name: factor}), (one,), (one,))
    return slopes


# Fields of a group's work that depend on a PE; Table III has no `fixed`.
TIMED = ("forward_backward", "update", "fixed")


@compiled("parameters")
def differentiate_layers(
    division: Division, *, parameters: tuple[str, ...]
) -> dict[str, dict[str, Array]]:
    """Compute d work / d log parameter [cells], by parameter and field of a group's work [s]."""

    def reduce_scaled(factors: Factors) -> dict[str, Array]:
        fields = {PLACES[name].field: factor for name, factor in factors.items()}
        scaled = {
            field: scale_bounded(jnp.asarray(getattr(division.pe, field)), factor)
            for field, factor in fields.items()
        }
        work = reduce_work(replace(division, pe=replace(division.pe, **scaled)))
        return {name: jnp.asarray(getattr(work, name)) for name in TIMED if hasattr(work, name)}

    return {name: push_forward(reduce_scaled, name) for name in parameters}


# Reads answers by name.
Read = Callable[[Answer], Mapping[str, AnyArray]]

# Step of a parameter: curvature and rounding each add an error of about 3e-11 to a slope.
STEP = 1.00001
# Slopes that a cube stores are rounded to multiples of this, so that one that is 0 but for rounding
# is 0 however the cells are cut into tiles. It is the resolution of single precision at 1.
RESOLUTION = 2.0**-24
# A parameter's factors; the second one cancels the curvature.
STEPS = (STEP, STEP**2)


def compare_answers(
    case: Case, read: Read, here: Mapping[str, AnyArray], parameter: str, factor: float
) -> dict[str, AnyArray]:
    """Return answers with a parameter times a factor over those `here`, by the names of `here`.

    here: the same answers of the case itself; NaN is returned where they are 0.
    """
    moved = read(evaluate(scale_parameters(case, {parameter: xp.asarray(factor)})))
    return {name: moved[name] / xp.where(y > 0, y, xp.nan) for name, y in here.items()}


def find_elasticities(
    case: Case, read: Read, here: Mapping[str, AnyArray], parameter: str
) -> dict[str, AnyArray]:
    """Return d log y / d log parameter by the names of `here`, towards more of the parameter."""
    near, far = (compare_answers(case, read, here, parameter, step) for step in STEPS)
    return {name: find_elasticity(*map(np.asarray, (near[name], far[name]))) for name in here}


def find_elasticity(near: Floats, far: Floats) -> Floats:
    """Return d log y / d log x of the ratios of y after each of STEPS to that before."""
    slopes: Floats = (4 * np.log(near) - np.log(far)) / (2 * np.log(STEP))
    return slopes


def round_elasticity(slope: Cells) -> Cells:
    """Round slopes to multiples of RESOLUTION; 0 and not -0, which is another bit."""
    steps = xp.round(slope / RESOLUTION)
    return xp.where(steps == 0, 0.0, steps * RESOLUTION)
