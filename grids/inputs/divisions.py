"""Divisions: the distinct ways in which the cells of a case divide a network.

Thousands of PE counts share the group of a node's PEs, and thousands of layouts the few degrees
that layers depend on: layers are reduced once for each.
"""

from functools import reduce
from operator import mul

import numpy as np
from numpy.typing import NDArray

from grids.entries.strategies import Strategy
from grids.models.layers import Floats
from grids.placing.group import PlacedGroups
from kernels.arrays import Cells
from kernels.configuration.run import Run
from kernels.names.parallelisms import KINDS

# PE counts that are so few that it spares no work to tell their group sizes apart.
FEW = 64


def find_divisions(
    strategy: Strategy,
    layers: int,
    placed: PlacedGroups,
    run: Run,
    segments: Floats,
    leading: int,
) -> tuple[Floats, dict[str, Floats], Floats, NDArray[np.int64]]:
    """The distinct p2, the degrees of several parallelisms, segments, and where each cell's are."""
    if not strategy.several:
        (part,) = strategy.parts or ("none",)
        sizes, position = _find_distinct(_merge_sizes(part, layers, placed, run.p2), leading)
        return sizes, {}, segments, position
    columns = {
        name: _merge_sizes(name, layers, placed, degree) for name, degree in run.degrees.items()
    }
    # Segments that change together with a degree are part of what is distinct.
    shapes = [np.shape(column) for column in columns.values()]
    if _vary_together(segments.shape, np.broadcast_shapes(*shapes)):
        columns["segments"] = segments
    rows, position = _find_distinct_rows([*columns.values()], leading)
    distinct = dict(zip(columns, rows, strict=True))
    segments = distinct.pop("segments", segments)
    return reduce(mul, distinct.values()), distinct, segments, position


def _vary_together(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes vary along the same dimension."""
    return any(a > 1 and b > 1 for a, b in zip(first, second, strict=True))


def _merge_sizes(part: str, layers: int, placed: PlacedGroups, degree: Cells) -> Floats:
    """Degrees as far as they matter: what is beyond the largest is all the same, and cannot be."""
    sizes = np.asarray(degree)
    match part in KINDS and KINDS[part].divides:
        case "layers":  # a layer for each stage at least
            most = layers + 1
        case "operators":
            most = max(placed.sizes, default=1) + 1
        case _:
            return sizes
    return np.asarray(np.minimum(sizes, most))


def _find_distinct(p2: Floats, leading: int) -> tuple[Floats, NDArray[np.int64]]:
    """The distinct group sizes along the dimension of pe, and where each cell's is.

    Of few PE counts, or groups, there are as many sizes, some of them twice: programs then are
    shared, too.
    """
    # Thousands of PE counts share the one size of a node's groups: layers are reduced once.
    sizes, position = np.unique(p2, return_inverse=True)
    asked = max(p2.shape)
    if asked <= FEW:
        sizes = np.pad(sizes, (0, max(0, asked - sizes.size)), "edge")
    along_pe = [1] * p2.ndim
    along_pe[leading] = sizes.size
    return sizes.reshape(along_pe), position.reshape(p2.shape)


def _find_distinct_rows(
    columns: list[Floats], leading: int
) -> tuple[list[Floats], NDArray[np.int64]]:
    """The distinct combinations of values along the dimension of pe, and where each cell's is."""
    cells = np.broadcast_arrays(*columns)
    rows, position = np.unique(
        np.stack([column.ravel() for column in cells]), axis=1, return_inverse=True
    )
    along_pe = [1] * cells[0].ndim
    along_pe[leading] = rows.shape[1]
    return [row.reshape(along_pe) for row in rows], position.reshape(cells[0].shape)


def take_at_cells(values: Floats, position: NDArray[np.int64], leading: int = 0) -> Floats:
    """What was found for each group size, for each cell.

    values [..., cells with sizes in the place of pe]; `leading` dimensions of choices come first.
    """
    pe = values.ndim - position.ndim + leading
    if pe < 0 or values.shape[pe] == 1:  # the same for all sizes
        return values
    index = position.reshape((1,) * (values.ndim - position.ndim) + position.shape)
    return np.take_along_axis(values, index, axis=pe)
