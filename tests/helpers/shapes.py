"""Check the shapes that the kernels declare, as their functions are called.

Only where the environment asks for it: 7 % of the suite's time.
"""

import os
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import partial, wraps
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype
from jax.stages import ArgInfo

ARE_CHECKED = bool(os.environ.get("PARADL_CHECK_SHAPES"))

# The hook decorates each function with this, looked up as its module is loaded. An int is a float.
check = partial(jaxtyping.jaxtyped, typechecker=beartype(conf=BeartypeConf(is_pep484_tower=True)))


def install_checks() -> None:
    """Make the kernels' functions check shapes; call before anything imports the kernels."""
    vars(jaxtyping)["jaxtyped"] = _decorate
    jaxtyping.install_import_hook("paradl.kernels", "beartype.beartype")


def _decorate(typechecker: object) -> Callable[[Any], Any]:
    """Decorate a function so that checks are prepared when it is first called."""
    return _decorate_one


def _decorate_one(item: Any) -> Any:
    if isinstance(item, type):
        if is_dataclass(item) and "__init__" in vars(item):
            type.__setattr__(item, "__init__", _check_later(vars(item)["__init__"]))
        return item
    # Functions inside functions are made anew in each call: preparing them took a tenth of the
    # time.
    return item if "<locals>" in item.__qualname__ else _check_later(item)


def _check_later(function: Callable[..., Any]) -> Callable[..., Any]:
    checked: Callable[..., Any] | None = None

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        # Of a program that it lowers, JAX keeps descriptions in place of arrays.
        if any(isinstance(value, ArgInfo) for value in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        if checked is None:
            checked = check(function)
        return checked(*args, **kwargs)

    return call
