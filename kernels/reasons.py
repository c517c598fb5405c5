"""Reasons: what stops a line of PE counts, and how often."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells, Limits
from kernels.flags import FORBIDS, Limit
from kernels.fold import Folding, fold
from kernels.line import Line

# Of one that the group merely does not divide: that says nothing about scaling.
STOPS = FORBIDS & ~Limit.GROUP_DOES_NOT_DIVIDE
FLAGS = 255
# Four limits are counted at once, in the four bytes of a word: of fewer than 256 cells.
COUNTED = 128


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Reasons:
    """Of each slice: the largest PE count that nothing forbids, 0 for none; the flags that forbid
    the next one, 0 at the end of the axis; how many PE counts each limit forbids or marks, along a
    leading dimension in the order of `Limit`.
    """

    largest_pe: Cells
    forbidden_by: Limits
    counts: Cells


def reasons(line: Line, others: tuple[int, ...]) -> Reasons:
    """Of the slices, of shape `others`, of a line."""
    found = fold(line, Folding(_each, _last, _nowhere), others)
    row = (found // (FLAGS + 1)) - 1
    pe = jnp.asarray(line.p, float).ravel()[row]
    return Reasons(
        largest_pe=jnp.where(row >= 0, pe, 0),
        forbidden_by=(found & FLAGS).astype(jnp.uint8),
        counts=jnp.broadcast_to(_counts(jnp.asarray(line.limit)), (len(Limit), *others)),
    )


def nothing(shape: tuple[int, ...]) -> Reasons:
    """Of lines without any PE counts."""
    none = jnp.zeros(shape)
    return Reasons(none, none.astype(jnp.uint8), jnp.zeros((len(Limit), *shape), jnp.int32))


def longer(earlier: Reasons, later: Reasons) -> Reasons:
    """Of a line from those of two parts, `later` of the larger PE counts."""
    stopped = jnp.equal(later.largest_pe, 0) & jnp.greater(earlier.forbidden_by, 0)
    return Reasons(
        largest_pe=jnp.maximum(earlier.largest_pe, later.largest_pe),
        forbidden_by=jnp.where(stopped, earlier.forbidden_by, later.forbidden_by),
        counts=jnp.add(earlier.counts, later.counts),
    )


def _each(line: Line) -> Array:
    """One number: above the flags, the row, counted from 1, that nothing forbids."""
    number = (jnp.asarray(line.row, jnp.int64) + 1) * (FLAGS + 1)
    return jnp.where(line.allowed, number, (line.limit & jnp.uint8(STOPS)).astype(jnp.int64))


def _nowhere(shape: tuple[int, ...]) -> Array:
    return jnp.zeros(shape, jnp.int64)


def _last(earlier: Array, later: Array) -> Array:
    """The last row that nothing forbids, and the first reason after it."""
    stopped = jnp.where((earlier & FLAGS) > 0, earlier, earlier | later)
    return jnp.where(later > FLAGS, later, stopped)


def _counts(limit: Array) -> Array:
    """How many PE counts have each limit, along a leading dimension."""
    rows = limit.shape[0]
    parts = -(-rows // COUNTED)
    padding = ((0, parts * COUNTED - rows), *[(0, 0)] * (limit.ndim - 1))
    words = jnp.pad(limit, padding).reshape(parts, COUNTED, *limit.shape[1:]).astype(jnp.uint32)
    low, high = (_sum(_to_bytes(words >> jnp.uint32(shift) & 15), 1) for shift in (0, 4))
    each = [word >> jnp.uint32(8 * byte) & 255 for word in (low, high) for byte in range(4)]
    return _sum(jnp.stack(each[: len(Limit)]), 1).astype(jnp.int32)


def _sum(values: Array, axis: int) -> Array:
    """The sum in the values' own type, whatever integers JAX prefers."""
    return jnp.sum(values, axis=axis, dtype=values.dtype)


def _to_bytes(bits: Array) -> Array:
    """Four bits of a word, each in a byte of its own: bit n is shifted by 7n, onto 8n."""
    return jnp.bitwise_and(bits * jnp.uint32(0x00204081), jnp.uint32(0x01010101))
