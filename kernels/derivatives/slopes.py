"""Derivatives of functions of parameters' factors, by name, where all factors are 1.

d y / d log x is d y / d factor there. Forward, one parameter at a time, the cost does not depend on
the number of results; backward, one result at a time, not on the number of parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

Tree = TypeVar("Tree")
Factors = dict[str, Array]
Slopes = Mapping[str, Array]


def push_forward(function: Callable[[Factors], Tree], name: str) -> Tree:
    """Return d y / d log parameter of all results of a function of the parameter's factor."""
    one = jnp.ones(())
    slopes: Tree
    _, slopes = jax.jvp(lambda factor: function({name: factor}), (one,), (one,))
    return slopes


def pull_back(
    function: Callable[[Factors], dict[str, Array]],
    names: Sequence[str],
    shape: tuple[int, ...] = (),
) -> tuple[dict[str, Array], dict[str, Slopes]]:
    """Return the results [shape], and d result / d log parameter by both names.

    function: of factors [shape]; results at an index depend only on factors at that index.
    """
    ones = {name: jnp.ones(shape) for name in names}
    values, push = jax.linearize(function, ones)

    def walk_back(result: str) -> Slopes:
        # One result at a time: all at once would mostly propagate zeros.
        (slopes,) = jax.linear_transpose(lambda moved: push(moved)[result], ones)(jnp.ones(shape))
        return dict(slopes)

    return values, {result: walk_back(result) for result in values}
