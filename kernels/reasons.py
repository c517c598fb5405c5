"""Reasons: what stops a line of PE counts, and how often."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells, Limits
from kernels.flags import FORBIDS, Limit
from kernels.line import Line

# Four limits are counted at once, in the four bytes of a word: of fewer than 256 cells.
COUNTED = 128


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Reasons:
    """The largest PE count that nothing forbids, 0 for none, and the flags that forbid the next
    one, 0 at the end of the axis.

    Flags of one that the group merely does not divide say nothing about scaling.
    """

    largest_pe: Cells
    forbidden_by: Limits


def of_each(line: Line) -> Reasons:
    """Of each cell by itself."""
    why = line.limit & jnp.uint8(FORBIDS & ~Limit.GROUP_DOES_NOT_DIVIDE)
    return Reasons(
        largest_pe=jnp.where(line.allowed, jnp.asarray(line.p, jnp.float32), 0),
        forbidden_by=jnp.where(line.allowed, jnp.uint8(0), why),
    )


def nothing(shape: tuple[int, ...]) -> Reasons:
    """Of `shape` lines without any PE counts."""
    return Reasons(jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.uint8))


def longer(earlier: Reasons, later: Reasons) -> Reasons:
    """Of a line from those of two parts, `later` of the larger PE counts."""
    stopped = jnp.equal(later.largest_pe, 0) & jnp.greater(earlier.forbidden_by, 0)
    return Reasons(
        largest_pe=jnp.maximum(earlier.largest_pe, later.largest_pe),
        forbidden_by=jnp.where(stopped, earlier.forbidden_by, later.forbidden_by),
    )


def counts(limit: Limits) -> Array:
    """How many PE counts have each limit, along a leading dimension."""
    limit = jnp.asarray(limit)
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
