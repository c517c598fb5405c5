"""Distinct divisions of a network among the cells of a case.

Thousands of PE counts share one group size, and a hundred thousand rows of parameters have about a
hundred distinct combinations that layers depend on. So layers are reduced once per distinct one.
"""

from collections.abc import Mapping
from typing import TypeVar

import jax
import numpy as np

from paradl.grids.entries.parameters import DEGREES, PARAMETERS
from paradl.grids.placing.group import PlacedGroups
from paradl.kernels.arrays import Cells
from paradl.kernels.configuration.run import Run
from paradl.kernels.names.arrays import Floats, Integers
from paradl.kernels.parallelism.layout import Layout
from paradl.kernels.parallelism.parallelism import Parallelism

Tree = TypeVar("Tree")
# By dimension, counted from the last: the position of its cells among the distinct ones.
Positions = Mapping[int, Integers]
# With this few cells, merging equal divisions saves no work.
FEW = 64


def find_divisions(
    layout: Layout, layers: int, placed: PlacedGroups, run: Run, segments: Floats, leading: int
) -> tuple[dict[str, Floats], Floats, Integers]:
    """Return distinct degrees by parallelism, their segments, and each cell's position in them."""
    columns = {
        part.sends_as: _merge_sizes(part, layers, placed, run.degrees[part.sends_as])
        for part in layout.parts
    }
    # Segments that vary along with a degree are part of the division.
    shapes = [np.shape(column) for column in columns.values()]
    both = zip(segments.shape, np.broadcast_shapes(*shapes), strict=True)
    if any(first > 1 and second > 1 for first, second in both):
        columns["segments"] = segments
    rows, position = _find_distinct([*columns.values()], leading)
    distinct = dict(zip(columns, rows, strict=True))
    segments = distinct.pop("segments", segments)
    return distinct, segments, position


def _merge_sizes(part: Parallelism, layers: int, placed: PlacedGroups, degree: Cells) -> Floats:
    """Return degrees capped just above the largest possible one: all larger ones are invalid."""
    # A layer for each stage at least.
    most = {"layers": layers, "operators": max(placed.sizes, default=1)}.get(part.divides or "")
    return np.asarray(degree if most is None else np.minimum(degree, most + 1))


def _find_distinct(columns: list[Floats], leading: int) -> tuple[list[Floats], Integers]:
    """Return distinct combinations along the pe dimension, and each cell's position in them.

    Few cells are padded to their own number, so that one compiled program serves them all.
    """
    cells = np.broadcast_arrays(*columns)
    values, numbers = zip(
        *(np.unique(column, return_inverse=True) for column in cells), strict=True
    )
    # One code per combination: 0.4 ms for 4,000 pairs, where `unique` of rows takes 3.4 ms.
    shape = [column.size for column in values]
    codes = np.ravel_multi_index([column.ravel() for column in numbers], shape)
    _, first, position = np.unique(codes, return_index=True, return_inverse=True)
    along_pe, most = [1] * cells[0].ndim, max(cells[0].shape)
    if most <= FEW:
        first = np.pad(first, (0, max(0, most - first.size)), "edge")
    along_pe[leading] = first.size
    rows = [column.ravel()[first].reshape(along_pe) for column in cells]
    return rows, position.reshape(cells[0].shape)


def take_at_cells(values: Floats, position: Integers, leading: int = 0) -> Floats:
    """Spread values of each division to its cells.

    values: [..., cells], with divisions in the place of pe. leading: dimensions of choices.
    """
    pe = values.ndim - position.ndim + leading
    if pe < 0 or values.shape[pe] == 1:  # the same for all divisions
        return values
    if position.size == position.shape[leading]:  # as below, in a third of the time
        return np.take(values, position.ravel(), axis=pe)
    index = position.reshape((1,) * (values.ndim - position.ndim) + position.shape)
    return np.take_along_axis(values, index, axis=pe)


def thin_rows(
    axes: Mapping[str, Floats], rows: Mapping[str, Mapping[str, Floats]]
) -> tuple[dict[str, Floats], Positions]:
    """Keep one row per combination that layers depend on, and the position of each row in them.

    rows: columns by axis. Group sizes are handled elsewhere, for all axes together.
    """
    thin, positions = dict(axes), dict[int, Integers]()
    for position, (dim, numbers) in enumerate(axes.items()):
        if dim in rows and numbers.size > 1:
            first, positions[position - len(axes)] = _find_distinct_rows(
                rows[dim], numbers.astype(int)
            )
            thin[dim] = numbers[first]
    return thin, positions


def _find_distinct_rows(
    columns: Mapping[str, Floats], numbers: Integers
) -> tuple[Integers, Integers]:
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
