"""Groups: the layers of a model, divided by a strategy into groups of each requested size.

This is the first of the oracle's two stages. Few axes of a sweep affect it, so blocks that differ
along the others share its result. Of a pipeline's stages only those are kept that may be the
fullest for some batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar

import jax
import numpy as np

from paradl.grids.entries.strategies import Strategy
from paradl.grids.inputs.factors import Storage
from paradl.grids.inputs.placement import Arrangement, Rules, cross_rows, join_arrangements, place
from paradl.grids.models.layers import LayerTable
from paradl.grids.placing.group import NO_GROUPS, PlacedGroups
from paradl.kernels.compiled import fetch
from paradl.kernels.configuration.case import Work
from paradl.kernels.machine.device import PE
from paradl.kernels.names.arrays import Flags, Floats, Integers
from paradl.kernels.names.parallelisms import KINDS
from paradl.kernels.options import Options
from paradl.kernels.oracle.formulas import reduce_layers, time_layers, time_parts
from paradl.kernels.parallelism.layout import find_layout, find_part
from paradl.kernels.work.division import Division, Placement
from paradl.kernels.work.group import Bounds, GroupWork
from paradl.kernels.work.layers import Layers

Tree = TypeVar("Tree")
# Fields of a PE that do not affect the work of layers.
APART = ("memory_capacity", "reserved")
# Stages kept at least, where there are as many. Few networks need more, so one compiled program
# serves most.
STAGES = 4
# Sizes reduced at once: with 175 layers, 5.7 MB per array.
SIZES = 4096
# Results kept: those of the blocks in progress, and of the next ones.
KEPT = 16


@dataclass(frozen=True, eq=False)
class Groups:
    """A strategy's groups of the distinct `degrees`, which lie along the pe dimension.

    degrees: keyed by the parallelism's `sends_as`. layers: those of the table, with their slowdown
    over the roofline. delta: bytes per item. segments: micro-batches, where work or memory depends
    on them. state_bytes, weight_bytes: per weight, with and without gradient and optimizer states.
    placed: groups whose layers were placed, if any.
    """

    table: LayerTable
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
        # Factors of Table III ignore memory.
        is_paper = self.options.oracle == "paper"
        storage = None if is_paper else Storage(float(self.delta.item()), self.options.recompute)
        # From the innermost: pipeline stages balance what the other parallelisms leave.
        for part in reversed(find_layout(self.strategy.parts).parts):
            # Only pipeline stages depend on times; other placements depend on counts.
            staged = part.divides == "layers"
            arranged[part.name] = place(
                part.divides,
                self.degrees[part.sends_as],
                Rules(
                    table=self.table,
                    dims=self.strategy.dims,
                    layers=self.strategy.layers,
                    storage=storage if part.divides == "rows" else None,
                    options=self.options,
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

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        # By value, since each block makes its own arrays; of the PE, only what affects layers.
        pe = (getattr(self.pe, part.name) for part in fields(self.pe) if part.name not in APART)
        numbers = (*self.degrees.values(), self.delta, self.segments, self.layers.slowdown, *pe)
        states = self.state_bytes, self.weight_bytes
        of_all = self.table, self.strategy, self.options, self.placed
        return *of_all, identify_numbers(*numbers, *states)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


def identify_numbers(*values: Any) -> tuple[object, ...]:
    """Return what is equal if the numbers are."""
    arrays = (np.asarray(value) for value in values if value is not None)
    return tuple((array.shape, array.tobytes()) for array in arrays)


@lru_cache(maxsize=KEPT)
def reduce_groups(groups: Groups, stages: int = 1) -> tuple[Work, Bounds]:
    """Return what `reduce_new_groups` does, at once if the groups have been reduced lately."""
    return reduce_new_groups(groups, stages)


def reduce_new_groups(groups: Groups, stages: int = 1) -> tuple[Work, Bounds]:
    """Return the work of a group's busiest PE, and the bounds, for each size.

    stages: number of stages to return at least, the fullest first.
    """
    placement, bounds = groups.place()
    division = groups.divide(placement)
    if division.options.oracle == "paper":
        # Channel reduces like filter: one compiled program serves both.
        names = tuple(find_part(name).sends_as for name in division.parallelisms)
        division = replace(division, parallelisms=names)
    return _keep_fullest(reduce_in_parts(division, reduce_layers), stages), bounds


def reduce_in_parts(division: Division, reduce: Callable[[Division], Tree]) -> Tree:
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


def _keep_fullest(work: Work, least: int) -> Work:
    """Return the work with only these stages, at least `least`: every stage costs time later."""
    if isinstance(work, GroupWork) and work.row_states is not None:
        # States of rows grow up to a bound, which is not linear in the batch: all stages stay.
        held = work.activations, work.parameters, work.row_states
        activations, parameters, rows = jax.tree.map(lambda values: _pad(values, least), held)
        return replace(work, activations=activations, parameters=parameters, row_states=rows)
    if len(work.activations) == len(work.parameters) == 1:  # no choice: a tenth of the time
        both = np.broadcast_arrays(work.activations, work.parameters)
        activations, parameters = (np.repeat(values, least, axis=0) for values in both)
        return replace(work, activations=activations, parameters=parameters)
    # A stage's memory is linear in the batch, with activations as slope and parameters as
    # intercept. The fullest for some batch form the upper envelope. Finding it compares triples, so
    # a first pass, which sorts, drops stages that another exceeds in both.
    for choose in (_find_not_exceeded, _find_not_between):
        activations, parameters = np.broadcast_arrays(work.activations, work.parameters)
        chosen = _take_first(choose(activations, parameters), least)
        work = replace(
            work,
            activations=np.take_along_axis(activations, chosen, axis=0),
            parameters=np.take_along_axis(parameters, chosen, axis=0),
        )
    return work


def _pad(stages: Any, least: int) -> Any:
    """Repeat the last stage up to `least` stages; a repeated stage changes no maximum."""
    padding = [(0, max(0, least - len(stages))), *[(0, 0)] * (stages.ndim - 1)]
    return np.pad(stages, padding, "edge")


def _take_first(kept: Flags, least: int) -> Integers:
    """Return positions of kept stages [stage, cells] first, as many as any cell keeps."""
    most = max(STAGES, kept.sum(axis=0).max())
    # Cells keep different numbers of stages; the array has room for the largest.
    chosen: Integers = _pad(np.argsort(~kept, axis=0, kind="stable")[:most], least)
    return chosen


def _find_not_exceeded(activations: Floats, parameters: Floats) -> Flags:
    """True for stages that no other exceeds in both."""
    # The sort is stable: of two equal stages the first stays.
    order = np.argsort(-activations, axis=0, kind="stable")
    sorted_parameters = np.take_along_axis(parameters, order, axis=0)
    most = np.maximum.accumulate(sorted_parameters, axis=0)[:-1]
    kept = np.concatenate([np.ones_like(order[:1], bool), sorted_parameters[1:] > most])
    return np.take_along_axis(kept, np.argsort(order, axis=0), axis=0)


def _find_not_between(activations: Floats, parameters: Floats) -> Flags:
    """True for stages on or above the line from one with more activations to one with fewer."""
    more, fewer = activations[:, None, None], activations[None, None]
    above, below = parameters[:, None, None], parameters[None, None]
    slope, height = activations[None, :, None], parameters[None, :, None]
    between = (more > slope) & (slope > fewer)
    under = (height - above) * (more - fewer) <= (below - above) * (more - slope)
    exceeded: Flags = np.any(between & under, axis=(0, 2))
    return np.logical_and(_find_not_exceeded(activations, parameters), ~exceeded)
