"""Fastest: how fast a line of PE counts gets, and where."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from kernels.arrays import Cells
from kernels.line import Line

FINITE = 3e38  # no time in single precision is longer; infinite is none


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Fastest:
    """The fastest PE count that nothing forbids, with its times [s per epoch] and memory [B]; the
    largest that is efficient enough. 0 PEs: none; its time is infinite.
    """

    fastest_pe: Cells
    fastest_time: Cells
    fastest_comp_time: Cells
    fastest_memory: Cells
    efficient_pe: Cells


def of_each(line: Line) -> Fastest:
    """Of each cell by itself."""
    time = jnp.asarray(line.comp_time + line.comm_time, jnp.float32)
    time = jnp.where(line.allowed & (time <= FINITE), time, jnp.inf)
    pe = jnp.asarray(line.p, jnp.float32)
    return Fastest(
        fastest_pe=pe,
        fastest_time=time,
        fastest_comp_time=jnp.asarray(line.comp_time, jnp.float32),
        fastest_memory=jnp.asarray(line.memory, jnp.float32),
        efficient_pe=jnp.where(time * pe <= line.enough, pe, 0),
    )


def nothing(shape: tuple[int, ...]) -> Fastest:
    """Of `shape` lines without any PE counts."""
    none = jnp.zeros(shape, jnp.float32)
    return Fastest(none, none + jnp.inf, none, none, none)


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
