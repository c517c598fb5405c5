"""Summaries: what remains of a line of PE counts, reduced inside the compiled program.

How far a strategy scales and what stops it, for every slice of the cells across their first
dimension, the PE counts in ascending order.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells, Flags, Limits
from kernels.flags import FORBIDS, Limit

FINITE = 3e38  # no time in single precision is longer; infinite is none
# The flag of a PE count that stands in a line again: it is not summarised.
REPEATED = 128
# Four limits are counted at once, in the four bytes of a word: of fewer than 256 cells.
COUNTED = 128


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Summary:
    """Of each slice: the fastest PE count that nothing forbids, with its times [s per epoch] and
    memory [B]; the largest that nothing forbids, and the flags that forbid the next one (0 at the
    end of the axis); the largest with the asked parallel efficiency; how many PE counts each limit
    forbids or marks, along a leading dimension in the order of `Limit`. 0 PEs and NaN: none.
    """

    fastest_pe: Cells
    fastest_time: Cells
    fastest_comp_time: Cells
    fastest_memory: Cells
    largest_pe: Cells
    forbidden_by: Limits
    efficient_pe: Cells
    counts: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Line:
    """Answers for PE counts `p` along the first dimension of the cells: times [s per epoch], memory
    [B], flags; serial_time, an epoch on one PE, is of size 1 along the first dimension.
    """

    p: Cells
    comp_time: Cells
    comm_time: Cells
    memory: Cells
    limit: Limits
    serial_time: Cells


def summarise(line: Line, efficiency: Cells) -> Summary:
    """Summarise each slice of a line; `efficiency` is the parallel efficiency that is asked."""
    pe, limit = jnp.asarray(line.p, jnp.float32), jnp.asarray(line.limit)
    allowed = (limit & jnp.uint8(FORBIDS | REPEATED)) == 0
    time = jnp.asarray(line.comp_time + line.comm_time, jnp.float32)
    time = jnp.where(allowed, time, jnp.inf)
    fastest_time = jnp.min(time, axis=0)
    fastest = _least(pe, time <= jnp.minimum(fastest_time, FINITE))
    largest = _largest(pe, allowed)
    enough = jnp.asarray(line.serial_time / efficiency, jnp.float32)
    return Summary(
        fastest_pe=fastest,
        fastest_time=jnp.where(fastest > 0, fastest_time, jnp.nan),
        fastest_comp_time=_at(line.comp_time, pe, fastest),
        fastest_memory=_at(line.memory, pe, fastest),
        largest_pe=jnp.broadcast_to(largest, fastest.shape),
        forbidden_by=jnp.broadcast_to(_forbidding(limit, pe, largest), fastest.shape),
        efficient_pe=_largest(pe, time * pe <= enough),
        counts=jnp.broadcast_to(_counts(limit), (len(Limit), *fastest.shape)),
    )


def merged(earlier: Summary, later: Summary) -> Summary:
    """The summary of a line from those of two parts, `later` of the larger PE counts."""
    faster = jnp.isnan(earlier.fastest_time) | (later.fastest_time < earlier.fastest_time)
    stopped = jnp.equal(later.largest_pe, 0) & jnp.greater(earlier.forbidden_by, 0)

    def of_fastest(name: str) -> Array:
        return jnp.where(faster, getattr(later, name), getattr(earlier, name))

    return Summary(
        fastest_pe=of_fastest("fastest_pe"),
        fastest_time=of_fastest("fastest_time"),
        fastest_comp_time=of_fastest("fastest_comp_time"),
        fastest_memory=of_fastest("fastest_memory"),
        largest_pe=jnp.maximum(earlier.largest_pe, later.largest_pe),
        forbidden_by=jnp.where(stopped, earlier.forbidden_by, later.forbidden_by),
        efficient_pe=jnp.maximum(earlier.efficient_pe, later.efficient_pe),
        counts=jnp.add(earlier.counts, later.counts),
    )


def nothing(shape: tuple[int, ...]) -> Summary:
    """The summary of no PE counts at all, of `shape` slices."""
    none, unknown = jnp.zeros(shape, jnp.float32), jnp.full(shape, jnp.nan, jnp.float32)
    return Summary(
        fastest_pe=none,
        fastest_time=unknown,
        fastest_comp_time=unknown,
        fastest_memory=unknown,
        largest_pe=none,
        forbidden_by=jnp.zeros(shape, jnp.uint8),
        efficient_pe=none,
        counts=jnp.zeros((len(Limit), *shape), jnp.int32),
    )


def _least(pe: Array, where: Flags) -> Array:
    """The least PE count for which `where` holds, 0 for none."""
    least = jnp.min(jnp.where(where, pe, jnp.inf), axis=0)
    return jnp.where(jnp.isfinite(least), least, 0)


def _largest(pe: Array, where: Flags) -> Array:
    """The largest PE count for which `where` holds, 0 for none."""
    return jnp.max(jnp.where(where, pe, 0), axis=0)


def _at(values: Cells, pe: Array, chosen: Array) -> Array:
    """The value at the chosen PE count of each slice, NaN where none is chosen."""
    position = jnp.searchsorted(pe.ravel(), chosen.astype(pe.dtype))
    values = jnp.asarray(values)
    others = jnp.meshgrid(*map(jnp.arange, chosen.shape), indexing="ij", sparse=True)
    kept = (n if size > 1 else 0 for n, size in zip(others, values.shape[1:], strict=True))
    return jnp.where(chosen > 0, values[(position, *kept)], jnp.nan)


def _forbidding(limit: Array, pe: Array, largest: Array) -> Array:
    """The flags that forbid the first PE count after `largest`.

    One that the group merely does not divide says nothing about scaling.
    """
    reasons = limit & jnp.uint8(FORBIDS & ~Limit.GROUP_DOES_NOT_DIVIDE)
    first = _least(pe, (reasons > 0) & (pe > largest))
    return jnp.max(jnp.where(pe == first, reasons, jnp.uint8(0)), axis=0)


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
