"""Tables: all cells of a case along one dimension, from which kernels take points.

Discrete values (PEs, groups, segments) are laid out once; continuous parameters vary by point
(`kernels.derivatives.points`).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import jax
import numpy as np

from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Grid, Index
from paradl.grids.inputs.case import (
    Divided,
    Setup,
    choose_formulas,
    divide_layers,
    divide_rows,
    set_up,
)
from paradl.grids.inputs.divisions import take_at_cells
from paradl.grids.inputs.groups import Groups, identify_numbers, reduce_new_groups
from paradl.grids.inputs.values import Settings
from paradl.grids.inputs.workload import Workload
from paradl.kernels.arrays import use_numpy
from paradl.kernels.configuration.case import Case, Points
from paradl.kernels.names.arrays import Floats
from paradl.kernels.parallelism.layout import find_layout

Tree = TypeVar("Tree")

# The dimension of machines, which is no axis of a spec.
MACHINE = "machine"
# Networks and strategies kept, each for all machines: 0.1 MB for six.
KEPT = 256


def build_table(grid: Grid, index: Index, axes: Mapping[str, Floats]) -> Points:
    """Return the cells of the outer product of `axes`, in C order along one dimension, with their
    layers, which are reduced again for each point. Blocks are summed with each point anyway.
    """
    shape, case = tuple(values.size for values in axes.values()), grid.case(index, axes)
    assert case is not None  # the data set of a problem fits its model
    case = _flatten(case, shape, len(case.choices))
    if grid.find_blocks(index):
        return Points(case)
    divided = grid.build(divide_rows, index, axes, None)
    assert divided is not None
    return _add_layers(case, divided, shape)


class SharedTables:
    """Tables of a grid over the same axes.

    The layers of a network are reduced once for all machines, which lie along a dimension of their
    own, behind the axes. What belongs to a machine and a strategy serves all networks. 3,060 tables
    of 85 networks on six machines take 2.6 instead of 7.8 s of CPU (2026-11).
    """

    def __init__(self, grid: Grid, axes: Mapping[str, Floats], *, layered: bool) -> None:
        """layered: whether points vary parameters that layers depend on, as in `build_table`."""
        self._grid, self._layered = grid, layered
        self._axes = {**axes, MACHINE: np.zeros(1)}
        self._shape = tuple(values.size for values in self._axes.values())
        self._setups: dict[tuple[object, ...], Setup] = {}
        # Samples take one network after the other, a stream any of them.
        self._find_points = lru_cache(maxsize=KEPT)(self._build_points)

    def find(self, problem: tuple[int, int, int], strategy: int) -> Points:
        """Return the table of a (model, data set, system) under a strategy."""
        model, dataset, system = problem
        return self._find_points(model, dataset, strategy)[system]

    def _build_points(self, model: int, dataset: int, strategy: int) -> list[Points]:
        """Build the tables of all machines."""
        indices = [
            (model, dataset, machine, strategy) for machine in range(len(self._grid.systems))
        ]
        if self._grid.find_blocks(indices[0]):
            return [build_table(self._grid, index, self._axes) for index in indices]
        alike = defaultdict[object, list[Divided]](list)
        for index in indices:
            divided = self._grid.build(self._divide, index, self._axes, None)
            assert divided is not None  # the data set of a problem fits its model
            alike[_identify(divided)].append(divided)
        found = {}
        for some in alike.values():
            groups = _join_machines([divided.groups for divided in some])
            # In numpy, however many numbers all machines together have.
            with use_numpy():
                reduced = some[0].spread(reduce_new_groups(groups, some[0].setup.stages))
            for number, divided in enumerate(some):
                work, bounds = jax.tree.map(partial(_take_machine, number=number), reduced)
                case = divided.make_case(work, bounds)
                flat = _flatten(case, self._shape, len(divided.strategy.choices))
                found[divided.workload.system.name] = (
                    _add_layers(flat, divided, self._shape) if self._layered else Points(flat)
                )
        return [found[system.name] for system in self._grid.systems]

    def _divide(
        self,
        workload: Workload,
        strategy: Strategy,
        axes: Mapping[str, Floats],
        settings: Settings,
    ) -> Divided:
        key = workload.system.name, workload.samples, strategy
        settings = choose_formulas(strategy, workload, settings)
        if key not in self._setups:
            self._setups[key] = set_up(workload, strategy, axes, settings)
        return divide_layers(workload, strategy, self._setups[key])


def _identify(divided: Divided) -> tuple[object, ...]:
    """Return what machines must have in common for one reduction to serve them."""
    groups = divided.groups
    # How rows are divided follows from the memory that tensors take.
    in_rows = any(part.divides == "rows" for part in find_layout(groups.strategy.parts).parts)
    sizes = (*groups.degrees.values(), groups.segments, *([groups.delta] if in_rows else []))
    numbers = identify_numbers(divided.position, *sizes)
    kinds = jax.tree.structure((groups.layers, groups.pe, groups.degrees))
    return numbers, kinds, groups.strategy, groups.options, groups.placed


def _join_machines(groups: Sequence[Groups]) -> Groups:
    """Join groups that `_identify` alike, along the last dimension of cells."""

    def join(*leaves: Any) -> Any:
        first = leaves[0]
        if not isinstance(first, np.ndarray):
            assert all(leaf == first for leaf in leaves)
            return first
        # Bytes of few numbers compare in a tenth of the time of arrays.
        is_same = len({leaf.tobytes() for leaf in leaves}) == 1
        return first if is_same else np.concatenate(leaves, axis=-1)

    values = {
        part.name: jax.tree.map(join, *(getattr(of, part.name) for of in groups))
        for part in fields(Groups)
    }
    return replace(groups[0], **values)


def _take_machine(leaf: Floats, number: int) -> Floats:
    """Take the values [..., 1] of a machine, or those of all."""
    return leaf[..., number : number + 1] if leaf.shape[-1] > 1 else leaf


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
