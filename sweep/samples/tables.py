"""Tables: all cells of a case along one dimension, from which kernels take points.

Discrete values (PEs, groups, segments) are laid out once; continuous parameters vary by point
(`kernels.derivatives.points`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import jax
import numpy as np

from paradl.grids.grid import Grid, Index
from paradl.grids.inputs.case import Divided, divide_rows
from paradl.grids.inputs.divisions import take_at_cells
from paradl.kernels.configuration.case import Case, Points
from paradl.kernels.names.arrays import Floats

Tree = TypeVar("Tree")


def build_table(grid: Grid, index: Index, axes: Mapping[str, Floats], *, layered: bool) -> Points:
    """Return the cells of the outer product of `axes`, in C order along one dimension.

    layered: points vary parameters that layers depend on, so the layers come with the cells, to be
    reduced again for each point. Blocks are summed with each point anyway.
    """
    shape, case = tuple(values.size for values in axes.values()), grid.case(index, axes)
    assert case is not None  # the data set of a problem fits its model
    case = _flatten(case, shape, len(case.choices))
    if not layered or grid.find_blocks(index):
        return Points(case)
    divided = grid.build(divide_rows, index, axes, None)
    assert divided is not None
    return _add_layers(case, divided, shape)


def _add_layers(case: Case, divided: Divided, shape: tuple[int, ...]) -> Points:
    """Return the points of a flat case with its layers in their groups."""
    choices, groups = len(case.choices), divided.groups
    # These lie along the distinct divisions; a case has the degrees of all cells.
    by_division = groups.place()[0], groups.segments
    placement, segments = jax.tree.map(
        lambda leaf: take_at_cells(leaf, divided.position, choices), by_division
    )
    division = replace(groups.divide(placement), degrees={}, segments=segments)
    return Points(case, replace(_flatten(division, shape, choices), degrees=case.run.degrees))


def join_points(tables: Sequence[Points], cells: int) -> Points:
    """Concatenate tables of `cells` each, with divisions, one table after another."""

    def join(*leaves: Floats) -> Floats:
        first = leaves[0]
        if first.ndim == 0 or all(np.array_equal(first, leaf) for leaf in leaves[1:]):
            return first if first.ndim == 0 or first.shape[-1] == 1 else np.tile(first, len(leaves))
        whole = (np.broadcast_to(leaf, (*leaf.shape[:-1], cells)) for leaf in leaves)
        return np.concatenate(tuple(whole), axis=-1)

    if tables[0].division is None:
        blocks: Points = jax.tree.map(join, *tables)
        return blocks
    # The work is reduced again for each point, so any cell's will do.
    work = jax.tree.map(lambda leaf: np.asarray(leaf)[..., :1], tables[0].case.work)
    same = [replace(table, case=replace(table.case, work=work)) for table in tables]
    joined: Points = jax.tree.map(join, *same)
    return replace(joined, case=replace(joined.case, work=work))


def _flatten(tree: Tree, shape: tuple[int, ...], choices: int) -> Tree:
    """Flatten arrays [..., cells of `shape`] to one dimension of cells, of size 1 if all agree.

    choices: number of leading dimensions for choices.
    """

    def lay_out(leaf: Floats) -> Floats:
        array, rank = np.asarray(leaf), len(shape)
        if array.ndim == 0:
            return array
        if array.ndim < rank:  # one value per level, for all cells
            return array.reshape(*array.shape, *[1] * (choices + 1))
        leading, cells = array.shape[: array.ndim - rank], array.shape[array.ndim - rank :]
        if cells != shape and math.prod(cells) > 1:
            array = np.broadcast_to(array, leading + shape)
        return array.reshape(*leading, math.prod(array.shape[len(leading) :]))

    flat: Tree = jax.tree.map(lay_out, tree)
    return flat
