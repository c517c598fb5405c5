"""Summaries: what remains of a line of PE counts, reduced inside the compiled program.

How far a strategy scales and what stops it, for every slice of the cells across their first
dimension, the PE counts in ascending order.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells, Flags, Limits
from kernels.limits import FORBIDS, Limit

FINITE = 3e38  # no time in single precision is longer; infinite is none


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
    allowed = (limit & jnp.uint8(FORBIDS)) == 0
    # Once per cell, in single precision; the reductions then only read it.
    time = jnp.where(allowed, line.comp_time + line.comm_time, jnp.inf)
    time = jax.lax.optimization_barrier(time.astype(jnp.float32))
    fastest_time = jnp.min(time, axis=0)
    fastest = _least(pe, time <= jnp.minimum(fastest_time, FINITE))
    largest = _largest(pe, allowed)
    quick = jnp.asarray(line.serial_time / (efficiency * line.p))
    return Summary(
        fastest_pe=fastest,
        fastest_time=jnp.where(fastest > 0, fastest_time, jnp.nan),
        fastest_comp_time=_at(line.comp_time, pe, fastest),
        fastest_memory=_at(line.memory, pe, fastest),
        largest_pe=largest,
        forbidden_by=_forbidding(limit, pe, largest),
        efficient_pe=_largest(pe, time <= quick.astype(jnp.float32)),
        counts=jnp.stack([_count(limit & jnp.uint8(each), fastest) for each in Limit]),
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


def _count(flagged: Array, like: Array) -> Array:
    """How many PE counts have a flag, in the shape of the slices."""
    return jnp.broadcast_to(jnp.sum(flagged > 0, axis=0), like.shape)
