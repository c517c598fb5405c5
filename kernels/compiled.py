"""Compilation that keeps a function's types: `jax.jit` alone makes every result `Any`."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import jax

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def compiled(
    *static: str,
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Compile a function once for each value of its arguments `static`."""

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        return cast(Callable[Arguments, Result], jax.jit(function, static_argnames=static))

    return decorate
