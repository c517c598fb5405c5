"""Fastest: how fast a line of PE counts gets, and where."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells
from kernels.fold import Folding, fold
from kernels.line import Line, at_row

FINITE = 3e38  # no time in single precision is longer; infinite is none
INFINITE = 0x7F800000  # its bits
# A row's number, below the bits of a time.
ROW_BITS = 32
ROW = (1 << ROW_BITS) - 1


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Fastest:
    """Of each slice: the fastest PE count that nothing forbids, with its times [s per epoch] and
    memory [B]; the largest that is efficient. 0 PEs: none; its time is infinite.
    """

    fastest_pe: Cells
    fastest_time: Cells
    fastest_comp_time: Cells
    fastest_memory: Cells
    efficient_pe: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Race:
    """The same, with one number for the time and the row where it is: the less is the faster.

    Times in single precision are in the order of their bits; of equal ones the first row wins.
    efficient_row: of the largest efficient PE count, counted from 1; 0: none.
    """

    order: Array
    efficient_row: Array


def fastest(line: Line, others: tuple[int, ...]) -> Fastest:
    """Of the slices, of shape `others`, of a line."""
    found = fold(line, Folding(_each, _ahead, _nobody), others)
    time = jax.lax.bitcast_convert_type((found.order >> ROW_BITS).astype(jnp.int32), jnp.float32)
    row, efficient = found.order & ROW, found.efficient_row
    p = jnp.asarray(line.p, float)
    return Fastest(
        fastest_pe=jnp.where(jnp.isfinite(time), at_row(p, row), 0),
        fastest_time=time,
        fastest_comp_time=at_row(jnp.asarray(line.comp_time, jnp.float32), row),
        fastest_memory=at_row(jnp.asarray(line.memory, jnp.float32), row),
        efficient_pe=jnp.where(efficient > 0, at_row(p, efficient - 1), 0),
    )


def nothing(shape: tuple[int, ...]) -> Fastest:
    """Of lines without any PE counts."""
    none, no_pe = jnp.zeros(shape, jnp.float32), jnp.zeros(shape)
    return Fastest(no_pe, none + jnp.inf, none, none, no_pe)


def faster(earlier: Fastest, later: Fastest) -> Fastest:
    """Of a line from those of two parts, `later` of the larger PE counts."""
    is_later = jnp.less(later.fastest_time, earlier.fastest_time)
    found: Fastest = jax.tree.map(lambda a, b: jnp.where(is_later, b, a), earlier, later)
    return replace(found, efficient_pe=jnp.maximum(earlier.efficient_pe, later.efficient_pe))


def defined(found: Fastest) -> Fastest:
    """With NaN for the times and the memory of none."""
    some = jnp.greater(found.fastest_pe, 0)
    known: Fastest = jax.tree.map(lambda each: jnp.where(some, each, jnp.nan), found)
    return replace(known, fastest_pe=found.fastest_pe, efficient_pe=found.efficient_pe)


def _each(line: Line) -> Race:
    time = jnp.asarray(line.comp_time + line.comm_time, jnp.float32)
    time = jnp.where(line.allowed & (time <= FINITE), time, jnp.inf)
    bits = jax.lax.bitcast_convert_type(time, jnp.int32).astype(jnp.int64)
    pe, enough = jnp.asarray(line.p, jnp.float32), jnp.asarray(line.enough, jnp.float32)
    return Race(
        order=(bits << ROW_BITS) | jnp.asarray(line.row, jnp.int64),
        efficient_row=jnp.where(time * pe <= enough, jnp.asarray(line.row, jnp.int32) + 1, 0),
    )


def _nobody(shape: tuple[int, ...]) -> Race:
    return Race(jnp.full(shape, INFINITE << ROW_BITS, jnp.int64), jnp.zeros(shape, jnp.int32))


def _ahead(earlier: Race, later: Race) -> Race:
    return Race(
        order=jnp.minimum(earlier.order, later.order),
        efficient_row=jnp.maximum(earlier.efficient_row, later.efficient_row),
    )
