"""Tables: all cells of a case along one dimension, from which kernels take points.

Discrete values (PEs, groups, segments) are laid out once; continuous parameters vary by point
(`kernels.derivatives.points`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import jax
import numpy as np

from grids.entries.strategies import Strategy
from grids.inputs.case import (
    Setup,
    Workload,
    build_divided,
    choose_formulas,
    distinguish_groups,
    limit_sizes,
    set_up,
)
from grids.inputs.divisions import take_at_cells
from grids.inputs.groups import AlikeGroups, Groups
from grids.inputs.values import Settings
from kernels.configuration.case import Case, Points
from kernels.names.arrays import Floats, Integers
from kernels.oracle.formulas import Work
from kernels.work.division import Placement
from kernels.work.group import Bounds

Tree = TypeVar("Tree")

# Fields of a case that depend on the machine and the strategy, but for the run's largest batch.
OF_MACHINE = ("run", "network", "pe", "software")
# Those that depend on the network, besides its work and bounds.
OF_NETWORK = ("uncertainty", "training", "layer_slopes")


def build_table(
    workload: Workload,
    strategy: Strategy,
    axes: Mapping[str, Floats],
    settings: Settings,
    *,
    layered: bool = False,
    parts: "SharedParts | None" = None,
) -> Points:
    """Return the cells of the outer product of `axes`, in C order along one dimension.

    layered: whether points vary parameters that layers depend on, so that layers are reduced again
    for each point. parts: those of other tables over the same axes.
    """
    assert not strategy.laid  # samples have no layouts
    shape, choices = tuple(values.size for values in axes.values()), len(strategy.choices)
    table = Points((parts or SharedParts()).build_case(workload, strategy, axes, settings))
    if not layered:
        return table
    groups, position = distinguish_groups(workload, strategy, axes, settings)
    placement: Placement = jax.tree.map(
        lambda leaf: take_at_cells(leaf, position, choices), groups.place()[0]
    )
    division = _flatten(groups.divide(placement), shape, choices)
    return replace(table, division=replace(division, degrees=table.case.run.degrees))


class SharedParts:
    """Parts that tables of one grid over the same axes have in common, each built once.

    All networks share what belongs to a machine and a strategy; all machines share the sizes of a
    network's groups. 768 tables then take 3.4 instead of 6.4 s of CPU (2026-11).
    """

    def __init__(self) -> None:
        self._alike = AlikeGroups()
        # Systems by identity: those of a grid stay the same, and hashing one takes longer.
        self._setups: dict[tuple[object, ...], tuple[Setup, dict[str, Any]]] = {}

    def build_case(
        self,
        workload: Workload,
        strategy: Strategy,
        axes: Mapping[str, Floats],
        settings: Settings,
    ) -> Case:
        """Build the case with one dimension of cells."""
        shape, choices = tuple(values.size for values in axes.values()), len(strategy.choices)
        settings = choose_formulas(strategy, workload, settings)
        key = id(workload.system), workload.samples, strategy
        known = self._setups.get(key)
        setup = known[0] if known else set_up(workload, strategy, axes, settings)

        def flatten(part: Any) -> Any:
            return _flatten(part, shape, choices)

        def find_work(groups: Groups, position: Integers) -> tuple[Work, Bounds]:
            def finish(part: Any) -> Any:
                cells = setup.spread(part, position)
                if isinstance(cells, Bounds):
                    cells = limit_sizes(cells, strategy, setup.run)
                return flatten(cells)

            return self._alike.reduce(groups, setup.stages, position, finish)

        case = build_divided(workload, strategy, setup, find_work)
        if not known:
            parts = {name: flatten(getattr(case, name)) for name in OF_MACHINE}
            self._setups[key] = setup, parts
        parts = self._setups[key][1]
        own = {name: flatten(getattr(case, name)) for name in OF_NETWORK}
        run = replace(parts["run"], largest_batch=flatten(case.run.largest_batch))
        return replace(case, **parts | own | {"run": run})


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
        leading, kinds = leaves[0].shape[:-1], {leaf.dtype for leaf in leaves}
        # Filled in place: 3,060 tables of 90 arrays each would need a `np.broadcast_to` per array.
        whole = np.empty((*leading, len(leaves), cells), np.result_type(*kinds))
        for number, leaf in enumerate(leaves):
            whole[..., number, :] = leaf
        return whole.reshape(*leading, len(leaves) * cells)

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
