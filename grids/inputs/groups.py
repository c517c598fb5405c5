"""Groups: the layers of a model, divided by a strategy into groups of each requested size.

This is the first of the oracle's two stages. Few axes of a sweep affect it, so blocks that differ
along the others share its result.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from typing import Any, TypeAlias, TypeVar

import jax
import numpy as np

from grids.entries.strategies import Strategy
from grids.inputs.factors import Storage
from grids.inputs.layers import Mask
from grids.inputs.placement import Arrangement, Rules, cross_rows, join_arrangements, place
from grids.inputs.stages import fullest
from grids.models.layers import LayerTable
from grids.placing.group import NO_GROUPS, PlacedGroups
from kernels.compiled import fetch
from kernels.derivatives.layer_slopes import differentiate_layers
from kernels.machine.device import PE
from kernels.names.arrays import Floats, Integers
from kernels.names.parallelisms import KINDS
from kernels.options import Options
from kernels.oracle.formulas import (
    Work,
    reduce_layer_sizes,
    reduce_layer_times,
    reduce_layers,
    time_layers,
    time_parts,
)
from kernels.parallelism.layout import find_layout, find_part
from kernels.work.division import Division, Placement
from kernels.work.group import Bounds
from kernels.work.layers import Layers

Tree = TypeVar("Tree")
# By parameter, then by field of a group's work.
LayerSlopes: TypeAlias = Mapping[str, Mapping[str, Any]]

# Fields of a PE that do not affect the work of layers.
APART = ("memory_capacity", "reserved")
# Sizes reduced at once: with 175 layers, 5.7 MB per array.
SIZES = 4096
# Results kept: those of the blocks in progress, and of the next ones.
KEPT = 16


@dataclass(frozen=True, eq=False)
class Groups:
    """A strategy's groups of the distinct `degrees`, which lie along the pe dimension.

    degrees: keyed by the parallelism's `sends_as`. layers: those of the table, with their slowdown
    over the roofline. delta: bytes per item. mask: layers to split, None for the strategy's
    default. segments: micro-batches, where work or memory depends on them. state_bytes,
    weight_bytes: per weight, with and without gradient and optimizer states. placed: groups whose
    layers were placed, if any.
    """

    table: LayerTable
    mask: Mask
    strategy: Strategy
    layers: Layers
    pe: PE
    degrees: Mapping[str, Floats]
    delta: Floats
    options: Options
    segments: Floats
    state_bytes: Floats
    weight_bytes: Floats
    placed: PlacedGroups = NO_GROUPS

    def place(self) -> Arrangement:
        """Lay out the layers, and tell whether such groups are possible."""
        arranged: dict[str, Arrangement] = {}
        # From the innermost: pipeline stages balance what the other parallelisms leave.
        for part in reversed(find_layout(self.strategy.parts).parts):
            # Only pipeline stages depend on times; other placements depend on counts.
            staged = part.divides == "layers"
            arranged[part.name] = place(
                part.divides,
                self.degrees[part.sends_as],
                Rules(
                    table=self.table,
                    mask=self.mask,
                    dims=self.strategy.dims,
                    layers=self.strategy.layers,
                    storage=self._find_storage(),
                    cuts=self.options.cuts,
                    verbatim=self.options.verbatim,
                    groups=self.placed,
                    segments=self.segments,
                    costs=self._find_costs(arranged) if staged else None,
                    crossing=self._find_crossing(arranged) if staged else None,
                ),
            )
        return join_arrangements(arranged)

    def divide(self, placement: Placement, names: tuple[str, ...] | None = None) -> Division:
        """Return the laid-out layers as the kernels take them.

        names: the parallelisms to include, all by default.
        """
        return Division(
            layers=self.layers,
            pe=self.pe,
            placement=placement,
            degrees=self.degrees,
            delta=self.delta,
            parallelisms=self.strategy.parts if names is None else names,
            options=self.options,
            segments=self.segments,
            state_bytes=self.state_bytes,
            weight_bytes=self.weight_bytes,
        )

    @property
    def staged(self) -> bool:
        """True if layers are divided by their times, into the stages of a pipeline."""
        return any(part.divides == "layers" for part in find_layout(self.strategy.parts).parts)

    def _find_costs(self, arranged: Mapping[str, Arrangement]) -> Floats:
        """Time FW_l + BW_l [G, cells] of a PE's share, which pipeline stages balance.

        arranged: the parallelisms inside the pipeline.
        """
        if arranged:
            placement, _ = join_arrangements(arranged)
            times = time_parts(self.divide(placement, tuple(arranged)))
        else:
            times = time_layers(self.layers, self.pe, self.delta, self.options)
        costs: Floats = np.asarray(times.forward) + np.asarray(times.backward)
        return costs

    def _find_crossing(self, arranged: Mapping[str, Arrangement]) -> Floats | None:
        """Tensors that cuts carry if a parallelism inside divides rows; None: whole tensors."""
        if not any(KINDS[name].splits == "rows" for name in arranged):
            return None
        factors = (np.asarray(part) for part in join_arrangements(arranged)[0].factors)
        return cross_rows(self.table, np.stack(tuple(factors)))

    def _find_storage(self) -> Storage | None:
        """Return how tensors are stored; None for Table III, whose factors ignore memory."""
        if self.options.oracle == "paper":
            return None
        return Storage(float(self.delta.item()), self.options.recompute)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        # By value, since each block makes its own arrays; of the PE, only what affects layers.
        pe = (getattr(self.pe, part.name) for part in fields(self.pe) if part.name not in APART)
        return self.size_identity, _identify_numbers(self.layers.slowdown, *pe)

    @cached_property
    def size_identity(self) -> tuple[object, ...]:
        """All but the speed of a PE, on which no size of the work depends, but stages may."""
        states = self.state_bytes, self.weight_bytes
        numbers = _identify_numbers(*self.degrees.values(), self.delta, self.segments, *states)
        return self.table, self.mask, self.strategy, self.options, self.placed, numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


def _identify_numbers(*values: Any) -> tuple[object, ...]:
    arrays = (np.asarray(value) for value in values if value is not None)
    return tuple((array.shape, array.tobytes()) for array in arrays)


@lru_cache(maxsize=KEPT)
def reduce_groups(groups: Groups, stages: int = 1) -> tuple[Work, Bounds]:
    """Return the work of a group's busiest PE, and the bounds, for each size.

    stages: number of stages to return at least, the fullest first.
    """
    placement, bounds = groups.place()
    division = groups.divide(placement)
    if division.options.oracle == "paper":
        # Channel reduces like filter: one compiled program serves both.
        names = tuple(find_part(name).sends_as for name in division.parallelisms)
        division = replace(division, parallelisms=names)
    return fullest(_reduce_in_parts(division, reduce_layers), stages), bounds


class AlikeGroups:
    """Reduces groups of one network after the other, on several machines.

    Where machines differ only in speed, placements and sizes of the work are found once, and only
    times for each of them. Kept for one network at a time.
    """

    def __init__(self) -> None:
        self._table: LayerTable | None = None
        self._arranged: dict[object, Arrangement] = {}
        self._sizes: dict[object, tuple[Work, Bounds]] = {}

    def reduce(
        self,
        groups: Groups,
        stages: int,
        position: Integers,
        finish: Callable[[Any], Any],
    ) -> tuple[Work, Bounds]:
        """Return what `reduce_groups` does, finished.

        finish: spreads fields of the work, or the bounds, to cells with a group at `position`.
        """
        many = any(np.size(degree) > SIZES for degree in groups.degrees.values())
        if groups.options.oracle == "paper" or many:
            work, bounds = reduce_groups(groups, stages)
            return finish(work), finish(bounds)
        if groups.table is not self._table:
            self._table = groups.table
            self._arranged.clear()
            self._sizes.clear()
        key: tuple[object, ...] = groups.size_identity
        placement, bounds = groups.place() if groups.staged else self._place(key, groups)
        division = groups.divide(placement)
        # Machines often have the same stages although their times differ.
        stages_at = (placement.ends, placement.crossing) if groups.staged else ()
        key = key, _identify_numbers(position, *stages_at)
        if key not in self._sizes:
            sizes = fullest(fetch(reduce_layer_sizes(division)), stages)
            self._sizes[key] = finish(sizes), finish(bounds)
        work, bounds = self._sizes[key]
        return replace(work, **finish(fetch(reduce_layer_times(division)))), bounds

    def _place(self, key: object, groups: Groups) -> Arrangement:
        if key not in self._arranged:
            self._arranged[key] = groups.place()
        return self._arranged[key]


@lru_cache(maxsize=KEPT)
def differentiate_groups(groups: Groups, parameters: tuple[str, ...]) -> LayerSlopes:
    """Return the slopes of that work in parameters that layers depend on, for each size."""
    # Most cases have none, and no use for laying out their layers once more: 50,000 rows of 75
    # networks took 20.9 instead of 21.9 s of CPU.
    if not parameters:
        return {}
    division = groups.divide(groups.place()[0])
    return _reduce_in_parts(division, partial(differentiate_layers, parameters=parameters))


def _reduce_in_parts(division: Division, reduce: Callable[[Division], Tree]) -> Tree:
    """Reduce the division in parts; a PE's share of each layer is an array of layers x sizes."""
    sizes = np.asarray(division.group)
    axis = int(np.argmax(sizes.shape)) - sizes.ndim  # from the end: layers come first
    count = sizes.shape[axis]
    if division.options.oracle == "paper" or count <= SIZES:  # Table III only sums layers
        return fetch(reduce(division))
    parts = [
        fetch(reduce(_take_sizes(division, axis, count, start))) for start in range(0, count, SIZES)
    ]
    work: Tree = jax.tree.map(partial(_join_sizes, axis=axis, count=count), *parts)
    return work


def _take_sizes(division: Division, axis: int, count: int, start: int) -> Division:
    """Return SIZES of the division's sizes, padded with the last, so one program serves all."""
    at = np.minimum(np.arange(start, start + SIZES), count - 1)

    def take(leaf: Any) -> Any:
        varies = np.ndim(leaf) >= -axis and np.shape(leaf)[axis] == count
        return np.take(leaf, at, axis) if varies else leaf

    part: Division = jax.tree.map(take, division)
    return part


def _join_sizes(*parts: Any, axis: int, count: int) -> Any:
    """Concatenate parts [..., SIZES, ...]; arrays that do not vary stay as they are."""
    first = parts[0]
    if np.ndim(first) < -axis or np.shape(first)[axis] != SIZES:
        return first
    return np.take(np.concatenate(parts, axis), np.arange(count), axis)
