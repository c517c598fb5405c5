"""Derivatives of functions of parameters' factors, by name, where all factors are 1.

d y / d log x is d y / d factor there. Forward, one parameter at a time: the cost does not depend on
the number of results.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.places import PLACES, scale_bounded
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
