"""Rows of parameters in the first stage: layers are reduced once per distinct row.

A hundred thousand layouts have about a hundred distinct combinations that layers depend on.
"""

from collections.abc import Mapping
from typing import TypeVar

import jax
import numpy as np

from grids.entries.parameters import DEGREES, PARAMETERS
from kernels.names.arrays import Floats, Integers

Tree = TypeVar("Tree")
# By dimension, counted from the last: the position of its cells among the distinct ones.
Positions = Mapping[int, Integers]


def thin_rows(
    axes: Mapping[str, Floats], rows: Mapping[str, Mapping[str, Floats]]
) -> tuple[dict[str, Floats], Positions]:
    """Keep one row per combination that layers depend on, and the position of each row in them.

    rows: columns by axis. Group sizes are handled elsewhere, for all axes together.
    """
    thin, positions = dict(axes), dict[int, Integers]()
    for position, (dim, numbers) in enumerate(axes.items()):
        if dim in rows and numbers.size > 1:
            first, positions[position - len(axes)] = _find_distinct(rows[dim], numbers.astype(int))
            thin[dim] = numbers[first]
    return thin, positions


def _find_distinct(columns: Mapping[str, Floats], numbers: Integers) -> tuple[Integers, Integers]:
    """Return the positions of distinct rows, and the position of each row among them."""
    # Pipeline stages depend on segments, too.
    names = [name for name in columns if PARAMETERS[name].layered or name == "segments"]
    table = [columns[name][numbers] for name in names if name not in ("group", *DEGREES)]
    if not table:
        return np.zeros(1, np.int64), np.zeros(numbers.size, np.int64)
    _, first, position = np.unique(np.stack(table), axis=1, return_index=True, return_inverse=True)
    # Padded to a power of two, so that blocks share compiled programs.
    size = min(2 ** int(np.ceil(np.log2(first.size))), numbers.size)
    return np.pad(first, (0, max(0, size - first.size)), "edge"), position.reshape(-1)


def repeat_rows(reduced: Tree, positions: Positions) -> Tree:
    """Spread the values of distinct rows to all rows."""

    def repeat(leaf: Floats) -> Floats:
        for dim, position in positions.items():
            # Otherwise the value is the same for all rows.
            if np.ndim(leaf) >= -dim and leaf.shape[dim] > 1:
                leaf = np.take(leaf, position, axis=dim)
        return leaf

    repeated: Tree = jax.tree.map(repeat, reduced) if positions else reduced
    return repeated
