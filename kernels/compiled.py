"""Compilation that keeps a function's types: `jax.jit` alone makes every result `Any`."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import jax

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def compiled(
    *static: str, donated: tuple[str, ...] = ()
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Compile a function once for each value of its arguments `static`.

    The memory of its arguments `donated` is given up to its results, for which none is then sought.
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        fast = jax.jit(
            function, static_argnames=static, donate_argnames=donated, keep_unused=bool(donated)
        )
        return cast(Callable[Arguments, Result], fast)

    return decorate
