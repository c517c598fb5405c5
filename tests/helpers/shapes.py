"""Check the declared shapes of the kernels as they are called, if tests request it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial, wraps
from typing import Any

import jaxtyping
from beartype import beartype
from jax.stages import ArgInfo

# The hook decorates each function with this, looked up as its module is loaded.
check = partial(jaxtyping.jaxtyped, typechecker=beartype)


class Checks:
    """Whether shapes are checked now."""

    on = False


def install_checks() -> None:
    """Make the kernels' functions check shapes; call before anything imports the kernels."""
    vars(jaxtyping)["jaxtyped"] = _decorate
    jaxtyping.install_import_hook("kernels", "beartype.beartype")


@contextmanager
def check_shapes(on: bool) -> Iterator[None]:
    """Check shapes inside the block, or do not."""
    before, Checks.on = Checks.on, on
    try:
        yield
    finally:
        Checks.on = before


def _decorate(typechecker: object) -> Callable[[Any], Any]:
    """Decorate a function so that checks are prepared when it is first checked."""
    return _decorate_one


def _decorate_one(item: Any) -> Any:
    if isinstance(item, type):
        if is_dataclass(item) and "__init__" in vars(item):
            type.__setattr__(item, "__init__", _check_later(vars(item)["__init__"]))
        return item
    # Functions inside functions are made anew in each call: preparing them took a tenth of the
    # suite's time.
    return item if "<locals>" in item.__qualname__ else _check_later(item)


def _check_later(function: Callable[..., Any]) -> Callable[..., Any]:
    checked: Callable[..., Any] | None = None

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        if not Checks.on:
            return function(*args, **kwargs)
        # Of a program that it lowers, JAX keeps descriptions in place of arrays.
        if any(isinstance(value, ArgInfo) for value in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        if checked is None:
            checked = check(function)
        return checked(*args, **kwargs)

    return call
