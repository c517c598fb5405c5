"""Tables: all cells of a case along one dimension, from which kernels take points.

Discrete values (PEs, groups, segments) are laid out once; continuous parameters vary by point
(`kernels.oracle.points`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import jax
import numpy as np

from grids.entries.strategies import Strategy
from grids.inputs.case import Workload, build_case, distinguish_groups
from grids.inputs.divisions import take_at_cells
from grids.inputs.values import Settings
from kernels.configuration.case import Case
from kernels.names.arrays import Floats
from kernels.oracle.points import Points
from kernels.work.group import Placement

Tree = TypeVar("Tree")


def build_table(
    workload: Workload,
    strategy: Strategy,
    axes: Mapping[str, Floats],
    settings: Settings,
    *,
    layered: bool = False,
) -> Points:
    """Return the cells of the outer product of `axes`, in C order along one dimension.

    layered: whether points vary parameters that layers depend on, so that layers are reduced again
    for each point.
    """
    case = build_case(workload, strategy, axes, settings)
    assert isinstance(case, Case)  # samples have no layouts
    shape, choices = tuple(values.size for values in axes.values()), len(strategy.choices)
    table = Points(_flatten(case, shape, choices))
    if not layered:
        return table
    groups, position = distinguish_groups(workload, strategy, axes, settings)
    placement: Placement = jax.tree.map(
        lambda leaf: take_at_cells(leaf, position, choices), groups.place()[0]
    )
    division = groups.divide(placement)
    division = replace(division, degrees=case.run.degrees)
    return replace(table, division=_flatten(division, shape, choices))


def join_tables(tables: Sequence[Points], cells: int) -> Points:
    """Concatenate tables of `cells` each, with divisions, one table after another."""

    def join(*leaves: Floats) -> Floats:
        first = leaves[0]
        if first.ndim == 0 or all(np.array_equal(first, leaf) for leaf in leaves[1:]):
            return first if first.ndim == 0 or first.shape[-1] == 1 else np.tile(first, len(leaves))
        whole = (np.broadcast_to(leaf, (*leaf.shape[:-1], cells)) for leaf in leaves)
        return np.concatenate(tuple(whole), axis=-1)

    # The work is reduced again for each point, so any table's will do.
    work = tables[0].case.work
    same = [replace(table, case=replace(table.case, work=work)) for table in tables]
    joined: Points = jax.tree.map(join, *same)
    return replace(joined, case=replace(joined.case, work=work))


def stack_tables(tables: Sequence[Points], cells: int) -> Points:
    """Concatenate tables of `cells` each, of different problems, in all of their numbers."""

    def stack(*leaves: Floats) -> Floats:
        whole = [np.broadcast_to(leaf, (*np.shape(leaf)[:-1], cells)) for leaf in leaves]
        return np.concatenate(whole, axis=-1)

    stacked: Points = jax.tree.map(stack, *tables)
    return stacked


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
