"""Compilation, in double precision: every compiled program of paradl is made here.

`jax.jit` alone makes every result `Any`, and single precision of every number.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import jax
import numpy as np

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Tree = TypeVar("Tree")


class Compiled(Generic[Arguments, Result]):
    """A compiled function of the same arguments and result, in double precision."""

    def __init__(self, function: Callable[Arguments, Result], program: Any) -> None:
        update_wrapper(self, function)
        self._program = program

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        # For this call alone: JAX code of whoever imports paradl keeps its own precision.
        with jax.enable_x64(True):
            result: Result = self._program(*args, **kwargs)
            return result

    def clear(self) -> None:
        """Forget the programs that were compiled so far."""
        self._program.clear_cache()

    @property
    def programs(self) -> int:
        """How many programs were compiled: one for each set of shapes and static arguments."""
        # JAX has no public count of a function's programs.
        return int(self._program._cache_size())


def compiled(
    *static: str, donated: tuple[str, ...] = ()
) -> Callable[[Callable[Arguments, Result]], Compiled[Arguments, Result]]:
    """Compile a function once for each value of its arguments `static`.

    The memory of its arguments `donated` is given up to its results, for which none is then sought.
    """

    def decorate(function: Callable[Arguments, Result]) -> Compiled[Arguments, Result]:
        program = jax.jit(
            function, static_argnames=static, donate_argnames=donated, keep_unused=bool(donated)
        )
        return Compiled(function, program)

    return decorate


def fetch(tree: Tree) -> Tree:
    """The same numbers as numpy's arrays, which keep double precision outside of programs, too."""
    fetched: Tree = jax.tree.map(np.asarray, tree)
    return fetched


def put_on_device(tree: Tree) -> Tree:
    """The same numbers where programs run, so that they are moved once and not at each call."""
    # Without it, what is moved arrives in single precision.
    with jax.enable_x64(True):
        moved: Tree = jax.device_put(tree)
        return moved
