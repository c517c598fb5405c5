"""Fold: a line of PE counts put together row by row, inside the compiled program.

Rows are merged one after the other, elementwise, which processors do at the rate at which their
caches are read; of short rows, those of several segments of the line at once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells
from kernels.line import REPEATED, Line
from kernels.tiles import repeat

Tree = TypeVar("Tree")

# Cells that are worth a step of a loop (measured with benchmarks/kernel.py).
STEP_CELLS = 2**12


@dataclass(frozen=True)
class Folding(Generic[Tree]):
    """What is found of each cell of a row; of two parts of a line, the latter of the larger PE
    counts; of a line of so many slices, and no PE counts.
    """

    each: Callable[[Line], Tree]
    merged: Callable[[Tree, Tree], Tree]
    none: Callable[[tuple[int, ...]], Tree]


def fold(line: Line, folding: Folding[Tree], others: tuple[int, ...]) -> Tree:
    """What a folding finds along the PE counts, for cells of shape `others` across the line."""
    rows = jnp.shape(line.limit)[0]
    segments = _segments(rows, math.prod(others))
    steps = -(-rows // segments)
    cut: Line = jax.tree.map(lambda leaf: _cut(leaf, segments), _padded(line, segments * steps))

    def step(number: Cells, so_far: Tree) -> Tree:
        row: Line = jax.tree.map(lambda leaf: _row(leaf, number), cut)
        return folding.merged(so_far, folding.each(row))

    found = repeat(steps, step, folding.none((segments, *others)))
    while segments > 1:
        segments //= 2
        found = folding.merged(*(_every_other(found, first) for first in (0, 1)))
    whole: Tree = jax.tree.map(lambda leaf: leaf[0], found)
    return whole


def _segments(rows: int, others: int) -> int:
    """A power of two: parts of a line whose rows together are worth a step."""
    most = max(1, min(rows // 2, STEP_CELLS // others))
    return 1 << (most.bit_length() - 1)


def _padded(line: Line, rows: int) -> Line:
    """With more PE counts at the end, which do not count, to have this many."""
    more = rows - jnp.shape(line.limit)[0]

    def pad(leaf: Array, value: int = 0) -> Array:
        widths = [(0, more if leaf.shape[0] > 1 else 0), *[(0, 0)] * (leaf.ndim - 1)]
        return jnp.pad(leaf, widths, constant_values=value)

    if more == 0:
        return line
    longer: Line = jax.tree.map(lambda leaf: pad(jnp.asarray(leaf)), line)
    return replace(longer, limit=pad(jnp.asarray(line.limit), REPEATED))


def _cut(leaf: Array, segments: int) -> Array:
    """Rows as [segment, step]."""
    rows, *others = jnp.shape(leaf)
    return jnp.reshape(leaf, (1, 1, *others) if rows == 1 else (segments, -1, *others))


def _row(leaf: Array, step: Cells) -> Array:
    """Each segment's row of a step."""
    number = step if leaf.shape[1] > 1 else 0
    row: Array = jax.lax.dynamic_index_in_dim(leaf, number, 1, keepdims=False)
    return row


def _every_other(tree: Tree, first: int) -> Tree:
    """One of each pair of segments."""
    some: Tree = jax.tree.map(lambda leaf: leaf[first::2], tree)
    return some
