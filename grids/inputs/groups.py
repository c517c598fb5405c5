"""Groups: what a strategy makes of a model's layers in groups of each size that it asks for.

The first of the oracle's two stages. Few axes of a sweep matter to it: blocks that differ along the
others share the result.
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
from grids.inputs.placement import Laid, Rules, cross_rows, join_laid, place
from grids.inputs.stages import fullest
from grids.models.layers import Floats, LayerTable
from grids.placing.group import NO_GROUPS, PlacedGroups
from kernels.compiled import fetch
from kernels.derivatives.layer_slopes import differentiate_layers
from kernels.names.parallelisms import KINDS
from kernels.options import Options
from kernels.oracle.formulas import Work, reduce_layers, time_layers, time_parts
from kernels.parallelism.layout import find_layout, find_part
from kernels.work.compute import PE
from kernels.work.division import Division
from kernels.work.group import Bounds, Placement
from kernels.work.layers import Layers

Tree = TypeVar("Tree")
# By parameter and field of a group's work.
LayerSlopes: TypeAlias = Mapping[str, Mapping[str, Any]]

# What of a PE no layer's work depends on.
APART = ("memory_capacity", "reserved")
# Sizes whose layers are reduced at once: of 175 layers, 5.7 MB an array.
SIZES = 4096
# What the blocks in hand ask for, and those that come next.
KEPT = 16


@dataclass(frozen=True, eq=False)
class Groups:
    """A strategy's groups of the distinct `degrees`, which lie along the dimension of pe.

    degrees: by what parallelisms send. layers: those of the table, with how much slower than the
    roofline each is. delta: bytes an item. mask: the layers that are split, None for the
    strategy's own choice. segments, state_bytes: of what is cut into them, and of a weight, where
    work or memory depends on them; weight_bytes: of one without its gradient and the optimizer's
    states. placed: groups whose layers were placed, if any were.
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

    def place(self) -> Laid:
        """Where the layers go, and whether such groups can be."""
        laid: dict[str, Laid] = {}
        # The innermost first: a pipeline's stages balance what others leave of each layer.
        for part in reversed(find_layout(self.strategy.parts).parts):
            # Only a pipeline's stages depend on times; others are placed by counts alone.
            staged = part.divides == "layers"
            laid[part.name] = place(
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
                    costs=self._find_costs(laid) if staged else None,
                    crossing=self._find_crossing(laid) if staged else None,
                ),
            )
        return join_laid(laid)

    def divide(self, placement: Placement, names: tuple[str, ...] | None = None) -> Division:
        """The layers laid out so, as the kernels take them.

        names: parallelisms that are looked at alone, all by default.
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

    def _find_costs(self, laid: Mapping[str, Laid]) -> Floats:
        """FW_l + BW_l [G, cells] of a PE's own part, which a pipeline's stages balance.

        laid: what lies inside of the pipeline.
        """
        if laid:
            placement, _ = join_laid(laid)
            times = time_parts(self.divide(placement, tuple(laid)))
        else:
            times = time_layers(self.layers, self.pe, self.delta, self.options)
        costs: Floats = np.asarray(times.forward) + np.asarray(times.backward)
        return costs

    def _find_crossing(self, laid: Mapping[str, Laid]) -> Floats | None:
        """Tensors that cuts carry where parallelisms inside divide rows; None: whole ones."""
        if not any(KINDS[name].splits == "rows" for name in laid):
            return None
        factors = (np.asarray(each) for each in join_laid(laid)[0].factors)
        return cross_rows(self.table, np.stack(tuple(factors)))

    def _find_storage(self) -> Storage | None:
        """How tensors are held, which Table III's bound does not tell."""
        if self.options.oracle == "paper":
            return None
        return Storage(float(self.delta.item()), self.options.recompute)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        # By value: each block makes arrays of its own. Of the PE, what a layer's time depends on.
        pe = (getattr(self.pe, each.name) for each in fields(self.pe) if each.name not in APART)
        states = self.state_bytes, self.weight_bytes
        degrees = self.degrees.values()
        own = *degrees, self.delta, self.segments, *states, self.layers.slowdown
        arrays = [np.asarray(each) for each in (*own, *pe)]
        numbers = tuple((each.shape, each.tobytes()) for each in arrays)
        return self.table, self.mask, self.strategy, self.options, self.placed, numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


@lru_cache(maxsize=KEPT)
def reduce_groups(groups: Groups, stages: int = 1) -> tuple[Work, Bounds]:
    """The work of a group's busiest PE, and the bounds, for each of the sizes.

    stages: how many of them there are at least, the fullest first.
    """
    placement, bounds = groups.place()
    division = groups.divide(placement)
    if division.options.oracle == "paper":
        # Channel reduces as filter does: one compiled program serves both.
        names = tuple(find_part(name).sends_as for name in division.parallelisms)
        division = replace(division, parallelisms=names)
    return fullest(_reduce_in_parts(division, reduce_layers), stages), bounds


@lru_cache(maxsize=KEPT)
def differentiate_groups(groups: Groups, parameters: tuple[str, ...]) -> LayerSlopes:
    """The slopes of the same work in parameters that layers depend on, for each of the sizes."""
    division = groups.divide(groups.place()[0])
    differentiate = partial(differentiate_layers, parameters=parameters)
    return _reduce_in_parts(division, differentiate) if parameters else {}


def _reduce_in_parts(division: Division, reduce: Callable[[Division], Tree]) -> Tree:
    """The work for all sizes; a PE's own part of each layer is an array of layers x sizes."""
    sizes = np.asarray(division.group)
    axis = int(np.argmax(sizes.shape)) - sizes.ndim  # from the end: layers come first
    count = sizes.shape[axis]
    if division.options.oracle == "paper" or count <= SIZES:  # which sums layers alone
        return fetch(reduce(division))
    parts = [
        fetch(reduce(_take_sizes(division, axis, count, start))) for start in range(0, count, SIZES)
    ]
    work: Tree = jax.tree.map(partial(_join_sizes, axis=axis, count=count), *parts)
    return work


def _take_sizes(division: Division, axis: int, count: int, start: int) -> Division:
    """The division for SIZES of the sizes; the last ones repeat, so that one program serves all."""
    at = np.minimum(np.arange(start, start + SIZES), count - 1)

    def take(leaf: Any) -> Any:
        varies = np.ndim(leaf) >= -axis and np.shape(leaf)[axis] == count
        return np.take(leaf, at, axis) if varies else leaf

    part: Division = jax.tree.map(take, division)
    return part


def _join_sizes(*parts: Any, axis: int, count: int) -> Any:
    """Parts [..., SIZES, ...] in a row; what does not vary stays as it is."""
    first = parts[0]
    if np.ndim(first) < -axis or np.shape(first)[axis] != SIZES:
        return first
    return np.take(np.concatenate(parts, axis), np.arange(count), axis)
