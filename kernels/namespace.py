"""The array namespace of the kernels: jax.numpy inside programs, numpy where numbers are few.

Each formula is written once, with `xp` for either. What jax.numpy has no word for in common with
numpy, loops, a quantile and whole numbers, stands here for both.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy
import jax.scipy.special
import numpy as np

from kernels.arrays import AnyArray, Cells, Flags

if TYPE_CHECKING:
    from jax import numpy as xp
else:

    class _Namespace:
        """The functions of the one that is in use."""

        def __getattr__(self, name: str) -> Any:
            return getattr(_used.module, name)

    xp = _Namespace()

__all__ = ["xp"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Used(threading.local):
    """Which of them, of each thread by itself."""

    module: Any = jax.numpy


_used = _Used()


def in_numpy() -> bool:
    """True if formulas run in numpy, here and now."""
    return _used.module is np


@contextmanager
def use_numpy() -> Iterator[None]:
    """Formulas inside run in numpy; as in programs, NaN and infinity are no reason to warn."""
    before, _used.module = _used.module, np
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _used.module = before


def map_leading(function: Callable[[Any], Result], items: Any) -> Result:
    """The function of each item along the leading dimension, one after the other, stacked."""
    if not in_numpy():
        mapped: Result = jax.lax.map(function, items)
        return mapped
    each = [function(take_item(items, n)) for n in range(len(jax.tree.leaves(items)[0]))]
    stacked: Result = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    return stacked


def take_item(items: Any, number: Any) -> Any:
    """One of the items along the leading dimension."""
    return jax.tree.map(lambda leaf: xp.asarray(xp.asarray(leaf)[number]), items)


def repeat(count: int, body: Callable[[Any, Item], Item], carry: Item) -> Item:
    """`body` for each number below `count`; once needs no loop."""
    if in_numpy() or count == 1:
        for number in range(count):
            carry = body(number, carry)
        return carry
    looped: Item = jax.lax.fori_loop(0, count, body, carry)
    return looped


def find_quantile(probability: Cells) -> Cells:
    """The quantile of the standard normal distribution."""
    if not in_numpy():
        return jax.scipy.special.ndtri(probability)
    from scipy.special import ndtri  # late: 0.1 s, which not every question needs

    quantile: Cells = ndtri(probability)
    return quantile


def empty_last(values: Cells) -> AnyArray:
    """The values with 0 in place of the last along the leading dimension."""
    whole = xp.asarray(values)
    return xp.concatenate([whole[:-1], xp.zeros_like(whole[-1:])])


def is_whole(number: Cells) -> Flags:
    """True if nothing stands behind the point."""
    return xp.equal(number, xp.floor(number))


def divides(divisor: Cells, number: Cells) -> Flags:
    """True if a whole number below 2^53 is a multiple of another.

    Exact: a quotient that is rounded to a whole number gives, times the divisor, another number.
    """
    # A remainder is C's fmod, cell by cell: of 4096 cells it takes 37 us, and this 17.
    return xp.equal(xp.floor(xp.divide(number, divisor)) * divisor, number)
