"""Fold: a line of PE counts put together row by row, inside the compiled program.

Rows are merged one after the other, elementwise, so that a processor's vector units do it at the
rate at which its cache is read; of short rows, those of several segments of the line at once.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells
from kernels.line import REPEATED, Line
from kernels.tiles import repeat

Tree = TypeVar("Tree")

# Cells that are worth a step of a loop (measured with benchmarks/kernel.py).
STEP_CELLS = 2**12


def fold(
    line: Line,
    each: Callable[[Line], Tree],
    merged: Callable[[Tree, Tree], Tree],
    nothing: Callable[[tuple[int, ...]], Tree],
    others: tuple[int, ...],
) -> Tree:
    """What `each` finds of every cell, `merged` along the PE counts; of none, it is `nothing`.

    others: the shape of the cells across the line. The second argument of `merged` is that of the
    larger PE counts.
    """
    rows = jnp.shape(line.limit)[0]
    segments = _segments(rows, math.prod(others))
    steps = -(-rows // segments)
    cut: Line = jax.tree.map(lambda leaf: _cut(leaf, segments), _padded(line, segments * steps))

    def step(number: Cells, so_far: Tree) -> Tree:
        return merged(so_far, each(jax.tree.map(lambda leaf: _row(leaf, number), cut)))

    found = repeat(steps, step, nothing((segments, *others)))
    while segments > 1:
        segments //= 2
        found = merged(*(jax.tree.map(lambda leaf: leaf[of::2], found) for of in (0, 1)))
    last: Tree = jax.tree.map(lambda leaf: leaf[0], found)
    return last


def _segments(rows: int, others: int) -> int:
    """A power of two."""
    most = max(1, min(rows // 2, STEP_CELLS // others))
    return 1 << (most.bit_length() - 1)


def _padded(line: Line, rows: int) -> Line:
    """With more PE counts at the end, which do not count, to have this many."""
    more = rows - jnp.shape(line.limit)[0]

    def pad(leaf: Array, value: float) -> Array:
        widths = [(0, more if leaf.shape[0] > 1 else 0), *[(0, 0)] * (leaf.ndim - 1)]
        return jnp.pad(leaf, widths, constant_values=value)

    if more == 0:
        return line
    whole: Line = jax.tree.map(lambda leaf: pad(jnp.asarray(leaf), 0), line)
    return replace(whole, limit=pad(jnp.asarray(line.limit), REPEATED))


def _cut(leaf: Array, segments: int) -> Array:
    """Rows as [segment, step]."""
    rows, *others = jnp.shape(leaf)
    return jnp.reshape(leaf, (1, 1, *others) if rows == 1 else (segments, -1, *others))


def _row(leaf: Array, step: Cells) -> Array:
    """Each segment's row of a step."""
    return jax.lax.dynamic_index_in_dim(leaf, step if leaf.shape[1] > 1 else 0, 1, keepdims=False)
