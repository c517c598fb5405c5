"""Slopes: derivatives of any function of parameters' factors, by name, where all factors are 1.

d y / d log x is d y / d factor there. Forward, one parameter at a time, it costs some times what
the function does, however much the function gives; backward, one result at a time, however many
parameters there are.
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
    """d y / d log of a parameter, of all that the function gives of its factor."""
    one = jnp.ones(())
    slopes: Tree
    _, slopes = jax.jvp(lambda factor: function({name: factor}), (one,), (one,))
    return slopes


def pull_back(
    function: Callable[[Factors], dict[str, Array]],
    names: Sequence[str],
    shape: tuple[int, ...] = (),
) -> tuple[dict[str, Array], dict[str, Slopes]]:
    """The results of the function [shape], and d result / d log parameter, by both names.

    function: of factors [shape], each of which its own results alone depend on.
    """
    ones = {name: jnp.ones(shape) for name in names}
    values, push = jax.linearize(function, ones)

    def walk_back(result: str) -> Slopes:
        # From this result alone: all at once, most of the walk would be through zeros.
        (slopes,) = jax.linear_transpose(lambda moved: push(moved)[result], ones)(jnp.ones(shape))
        return dict(slopes)

    return values, {result: walk_back(result) for result in values}
