"""Arrays of the kernels: their types, and their namespace.

Each numeric axis of a cube (PEs, batch, bandwidth ...) is a dimension of `cells`; values that do
not vary along an axis have size 1 there and broadcast. Values per layer, pipeline stage, message,
network level or spatial dimension have one more, leading dimension.

Each formula is written once, with `xp`: jax.numpy in compiled programs, numpy for few numbers.
Functions that the two do not share, such as loops and a quantile, are defined here for both.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import NormalDist
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, dataclass_transform

import jax
import jax.numpy
import jax.scipy.special
import numpy as np
from jax import Array
from jaxtyping import Bool, Int, Num, UInt16

if TYPE_CHECKING:
    from jax import numpy as xp
else:

    class _Namespace:
        """Functions of the module in use."""

        def __getattr__(self, name: str) -> Any:
            return getattr(_used.module, name)

    xp = _Namespace()

__all__ = ["xp"]  # imported under that name

# Integer type of flags, of which there are ten.
LIMITS = np.uint16

if TYPE_CHECKING:
    AnyArray: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]]
else:  # numpy's scalars, too, which behave like arrays
    AnyArray: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]] | np.generic

# beartype does not accept an int as a float, so both are listed.
Cells: TypeAlias = Num[AnyArray | float | int, "*#cells"]
Flags: TypeAlias = Bool[AnyArray, "*#cells"]
Limits: TypeAlias = UInt16[AnyArray, "*#cells"]
PerLayer: TypeAlias = Num[AnyArray, "layer *#cells"]
PerStage: TypeAlias = Num[AnyArray, "stage *#cells"]
PerDevice: TypeAlias = Num[AnyArray, "device layer *#cells"]
OfDevice: TypeAlias = Num[AnyArray, "device *#cells"]
PerMessage: TypeAlias = Num[AnyArray, "message *#cells"]
Single: TypeAlias = Num[AnyArray, "1 *#cells"]  # one stage, or one message
PerLevel: TypeAlias = Num[AnyArray, "level *#cells"]
Extents: TypeAlias = Num[AnyArray, "3 layer *#cells"]
Factors: TypeAlias = Num[AnyArray, "3 *#cells"]
Ends: TypeAlias = Int[AnyArray, "stage *#cells"]

Item = TypeVar("Item")
Result = TypeVar("Result")
# Of fields of a pytree that choose formulas, and so are fixed when a program is compiled.
STATIC = {"static": True}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def pytree(cls: type[Result]) -> type[Result]:
    """Return a class as a frozen dataclass whose fields, but for STATIC ones, are arrays of JAX."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True)(cls))


# JAX finds the slope of a maximum by asking which argument equals it. A program that computes an
# argument twice, rounded otherwise, may find both or neither: of 50,000 rows of
# examples/surrogate.yaml, 1,352 had slopes of half to twice the true ones (jaxlib 0.10.2, 2026-11).
# These ask which is larger. Of equal arguments, each counts by half, as in JAX.
@jax.custom_jvp
def _maximum(x: Any, y: Any) -> Array:
    return jax.numpy.maximum(x, y)


@jax.custom_jvp
def _minimum(x: Any, y: Any) -> Array:
    return jax.numpy.minimum(x, y)


@_maximum.defjvp
def _push_maximum(at: tuple[Any, Any], changes: tuple[Any, Any]) -> tuple[Array, Array]:
    x, y = at
    return _maximum(x, y), _choose(x > y, x < y, *changes)


@_minimum.defjvp
def _push_minimum(at: tuple[Any, Any], changes: tuple[Any, Any]) -> tuple[Array, Array]:
    x, y = at
    return _minimum(x, y), _choose(x < y, x > y, *changes)


def _choose(first: Any, second: Any, dx: Any, dy: Any) -> Array:
    return jax.numpy.where(first, dx, jax.numpy.where(second, dy, (dx + dy) / 2))


_JAX = SimpleNamespace(**vars(jax.numpy) | {"maximum": _maximum, "minimum": _minimum})


class _Used(threading.local):
    """The module in use, by thread."""

    module: Any = _JAX


_used = _Used()


def in_numpy() -> bool:
    """True if formulas run in numpy in this thread."""
    return _used.module is np


def on_gpu() -> bool:
    """True if programs run on a GPU."""
    return jax.default_backend() == "gpu"


@contextmanager
def use_numpy() -> Iterator[None]:
    """Run formulas in numpy inside the block, without warnings about NaN and infinity."""
    before, _used.module = _used.module, np
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _used.module = before


def map_leading(function: Callable[[Any], Result], items: Any) -> Result:
    """Apply a function to the items along the leading dimension one by one; stack the results."""
    if not in_numpy():
        mapped: Result = jax.lax.map(function, items)
        return mapped
    results = [function(take_item(items, n)) for n in range(len(jax.tree.leaves(items)[0]))]
    stacked: Result = jax.tree.map(lambda *leaves: np.stack(leaves), *results)
    return stacked


def take_item(items: Any, number: Any) -> Any:
    """Return an item along the leading dimension."""
    return jax.tree.map(lambda leaf: xp.asarray(xp.asarray(leaf)[number]), items)


def repeat(count: int, body: Callable[[Any, Item], Item], carry: Item) -> Item:
    """Apply `body` for each number below `count`; a single time without a loop."""
    if in_numpy() or count == 1:
        for number in range(count):
            carry = body(number, carry)
        return carry
    looped: Item = jax.lax.fori_loop(0, count, body, carry)
    return looped


def find_quantile(probability: Cells) -> Cells:
    """Return a quantile of the standard normal distribution."""
    if not in_numpy():
        return jax.scipy.special.ndtri(probability)
    # SciPy's takes 0.2 s to import, a tenth of a cold answer; PE counts are few.
    quantile: Cells = np.vectorize(NormalDist().inv_cdf, otypes=[float])(probability)
    return quantile


def empty_last(values: Cells) -> AnyArray:
    """Replace the last value along the leading dimension by 0."""
    whole = xp.asarray(values)
    return xp.concatenate([whole[:-1], xp.zeros_like(whole[-1:])])


def is_whole(number: Cells) -> Flags:
    """True for whole numbers."""
    return xp.equal(number, xp.floor(number))


def divides(divisor: Cells, number: Cells) -> Flags:
    """True if a whole number below 2^53 is a multiple of another.

    Exact: if the quotient was rounded to a whole number, times the divisor it gives another number.
    """
    # A remainder is C's fmod, cell by cell: it takes 37 us for 4096 cells, and this 17.
    return xp.equal(xp.floor(xp.divide(number, divisor)) * divisor, number)
