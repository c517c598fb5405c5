"""Placement: which layers a group splits, along which dimensions, into which stages.

These are a strategy's discrete decisions, made before the kernels run: the layers to split (ParaDL,
section 5: convolutions for filter and channel; convolutions and poolings for spatial as far as
extents allow; linear layers of sequences), the factors of a spatial split, the pipeline's stages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

import numpy as np

from paradl.grids.entries.strategy_words import Which
from paradl.grids.inputs.factors import DividedLayers, Storage, find_factors
from paradl.grids.inputs.layers import split_layers, spread_layers
from paradl.grids.inputs.partition import stage_ends
from paradl.grids.models.layers import SAMPLE, LayerTable
from paradl.grids.placing.group import NO_GROUPS, PlacedGroup, PlacedGroups
from paradl.kernels.arrays import use_numpy
from paradl.kernels.names.arrays import Flags, Floats, Integers
from paradl.kernels.names.parallelisms import Divided
from paradl.kernels.options import Options
from paradl.kernels.work.division import Placed, Placement
from paradl.kernels.work.group import Bounds
from paradl.kernels.work.rows import row_share

Arrangement = tuple[Placement, Bounds]


@dataclass(frozen=True, eq=False)
class Rules:
    """A table's layers, and how they are divided.

    dims, layers: the strategy's choice of what is divided. storage: set if memory influences how
    rows are divided. options: whether as in Table III or in the experiments, and what cuts between
    pipeline stages carry. groups: placed groups; segments [cells]: micro-batches of their steps.
    costs [G, cells]: FW_l + BW_l, for stages only. crossing [G, cells]: items that cuts carry if a
    PE has part of the rows; by default whole tensors.
    """

    table: LayerTable
    dims: str | None = None
    layers: Which = "default"
    storage: Storage | None = None
    options: Options = field(default_factory=Options)
    groups: PlacedGroups = NO_GROUPS
    segments: Floats = field(default_factory=partial(np.ones, ()))  # one: steps are not cut
    costs: Floats | None = None
    crossing: Floats | None = None


def place(divided: Divided | None, degree: Floats, rules: Rules) -> Arrangement:
    """Lay out the layers for each degree [cells] of a parallelism that divides `divided`."""
    match divided:
        case None:
            return _place_whole(rules.table, degree), _make_bounds(degree == 1)
        case "layers":
            return _place_stages(rules, degree)
        case "rows":
            return _place_parts(rules, degree)
        case "filters":
            parts = rules.table.divisible_filters
            return _place_planes(rules, rules.table.divisible, parts, degree)
        case "channels":
            return _place_planes(rules, *_find_channels(rules.table), degree)
        case "operators":
            return _place_operators(rules, degree)


def _find_channels(table: LayerTable) -> tuple[Flags, Floats]:
    """Return the layers whose channels are divided, and their numbers of channels [G]."""
    # The paper leaves the first layer whole, whose channels are the sample's few. It does not bound
    # the group either, although `split=all` splits it.
    first = int(np.argmax(table.divisible))
    later = table.divisible & (np.arange(len(table)) != first)
    # Filters of a depthwise convolution have one channel: such a layer stays whole.
    channels = table.divisible_channels
    later &= (channels > 1) | (table.groups == 1)
    return later, np.where(np.arange(len(table)) == 0, np.inf, channels)


def join_arrangements(arranged: Mapping[str, Arrangement]) -> Arrangement:
    """Combine the layouts of several parallelisms, by name; all of them must be possible."""
    if len(arranged) == 1:
        return next(iter(arranged.values()))
    placements = {name: placement for name, (placement, _) in arranged.items()}
    splits = {name: placement.split for name, placement in placements.items()}
    crossings = (placement.crossing for placement in placements.values())
    bounds = [vars(bound).values() for _, bound in arranged.values()]
    return Placement(
        split=reduce(np.maximum, splits.values()),
        # At most one divides rows, and one has stages: the others have factors 1 and one stage.
        factors=reduce(np.maximum, (placement.factors for placement in placements.values())),
        ends=max((placement.ends for placement in placements.values()), key=len),
        splits=splits,
        crossing=next((c for c in crossings if c is not None), None),
    ), Bounds(*(reduce(np.logical_and, of_all) for of_all in zip(*bounds, strict=True)))


def _place_whole(table: LayerTable, degree: Floats) -> Placement:
    """Return a placement that splits nothing."""
    column = (1,) * degree.ndim
    return Placement(
        split=np.zeros((len(table), *column)),
        factors=np.ones((3, *column)),
        ends=np.full((1, *column), len(table)),
    )


def _make_bounds(fits: Flags) -> Bounds:
    """Return the bounds of a group that divides evenly, unless it is too large."""
    yes = np.ones(fits.shape, bool)
    return Bounds(fits=fits, even=yes, defined=yes)


def _place_planes(rules: Rules, wanted: Flags, parts: Floats, degree: Floats) -> Arrangement:
    """Divide filters or channels, `parts` [G] of each layer."""
    split = split_layers(rules.layers, wanted)
    divided = parts[split & np.isfinite(parts)]
    least = divided.min(initial=np.inf) if split.any() else 1  # with nothing to split, one PE
    uneven = np.zeros(degree.shape, bool)
    # Counts repeat: VGG-16's 13 convolutions have four different numbers of filters.
    for count in np.unique(divided):
        uneven |= np.remainder(count, degree) != 0
    column = split.astype(float).reshape(-1, *[1] * degree.ndim)
    return replace(_place_whole(rules.table, degree), split=column), replace(
        _make_bounds(degree <= least), even=~uneven
    )


def _place_operators(rules: Rules, degree: Floats) -> Arrangement:
    """Put layers on their placed devices; one device runs all."""
    table, groups = rules.table, rules.groups
    known = np.isin(degree, [1, *groups.sizes])
    placed = _stack_placed(table, groups, degree.astype(np.int64), rules.segments.astype(np.int64))
    arranged = replace(_place_whole(table, degree), placed=placed)
    fits = degree <= max(groups.sizes, default=1)
    return arranged, replace(_make_bounds(fits), even=known, defined=known)


def cross_rows(table: LayerTable, factors: Floats) -> Floats:
    """Items per sample [G, cells] of the fullest PE's rows that cross a cut behind each layer."""
    layers = spread_layers(table, factors.ndim - 1)
    with use_numpy():
        sizes = (layers.extents_x, layers.extents_y)
        sample, y = (row_share(extents, factors) for extents in sizes)
    return table.cross_parts(np.asarray(sample)[0], np.asarray(y))


def _place_stages(rules: Rules, degree: Floats) -> Arrangement:
    """Partition the layers for each number of stages, under each of the costs."""
    table, costs, crossing = rules.table, rules.costs, rules.crossing
    options, chunks = rules.options, rules.options.chunks
    assert costs is not None  # stages balance costs
    starts = table.layer_starts if options.verbatim else np.arange(len(table))
    layers, costs = len(starts), np.add.reduceat(costs, starts, axis=0)
    rows = np.append(starts[1:], len(table))  # where each layer ends
    defined = degree * chunks <= layers  # every part of a stage has a layer
    stages, at = np.unique(np.where(defined, degree, layers).astype(np.int64), return_inverse=True)
    crossing_cells = () if crossing is None else crossing.shape[1:]
    cells = np.broadcast_shapes(degree.shape, costs.shape[1:], crossing_cells)
    # Costs, and so partitions, vary with axes of PE speed and memory, and with a PE's share of the
    # layers.
    columns = [costs]
    if options.cuts == "crossing":
        whole = table.crossing.reshape(-1, *[1] * (costs.ndim - 1))
        columns.append(whole if crossing is None else crossing)
    both = np.stack(np.broadcast_arrays(*columns))
    varying = both.shape[2:]
    distinct, which = both.reshape(*both.shape[:2], -1), np.zeros(1, np.int64)
    if distinct.shape[2] > 1:  # sorting one column takes as long as a partition
        distinct, which = np.unique(distinct, axis=2, return_inverse=True)
    partitions = np.stack(
        [rows[_end_chunks(pair, stages, chunks) - 1] for pair in np.moveaxis(distinct, 2, 0)]
    )
    column = np.broadcast_to(which.reshape(varying), cells)
    at_cells = np.broadcast_to(at.reshape(degree.shape), cells)
    ends = np.moveaxis(partitions[column, :, at_cells], -1, 0)
    # At most as many stages as layers (Table III), or as layers with work in a chain.
    most = layers if options.cuts == "output" else max(table.depth, 1)
    bounds = replace(_make_bounds(degree * chunks <= most), defined=defined)
    return replace(_place_whole(table, degree), ends=ends, crossing=crossing), bounds


def _end_chunks(columns: Floats, stages: Integers, chunks: int) -> Integers:
    """Return where parts of stages end [part, n], for each number of stages [n].

    columns: costs, and items that cuts carry if they count [G]. Stage i of q has the parts i, q + i
    and so on of the network; the first ones of all stages are followed by the second ones, and a
    stage that a number lacks has parts without layers.
    """
    costs, *crossing = columns
    numbers = np.minimum(stages * chunks, costs.size)
    ends = stage_ends(costs, numbers, *crossing)
    stage, chunk = np.arange(stages.max())[:, None], np.arange(chunks)[:, None, None]
    parts = chunk * stages + np.minimum(stage, stages - 1)
    parts = np.minimum(parts, len(ends) - 1).reshape(-1, stages.size)
    return np.take_along_axis(ends, parts, axis=0)


def _place_parts(rules: Rules, degree: Floats) -> Arrangement:
    """Divide rows."""
    verbatim = rules.options.verbatim
    rows = DividedLayers(rules.table, rules.dims, rules.layers, rules.storage, verbatim)
    counts, at = np.unique(degree.astype(np.int64), return_inverse=True)
    divisions = find_factors(rows, counts.tolist())
    at = at.reshape(degree.shape)
    flags = {
        name: np.array([getattr(division, name) for division in divisions])[at]
        for name in ("fits", "even", "defined")
    }
    split = np.stack([division.split for division in divisions], axis=1)[:, at].astype(float)
    factors = np.array([division.factors for division in divisions], float).T[:, at]
    return replace(_place_whole(rows.table, degree), split=split, factors=factors), Bounds(**flags)


def _stack_placed(table: LayerTable, groups: PlacedGroups, pes: Integers, cuts: Integers) -> Placed:
    """Stack the placed groups for PE counts [cells] and segments [cells].

    Where no such group exists, one PE runs all layers in one piece.
    """
    pes, cuts = np.broadcast_arrays(pes, cuts)
    pairs, at = np.unique(
        np.stack([pes.ravel(), cuts.ravel()], axis=1), axis=0, return_inverse=True
    )
    # All layers on one device: all are on the critical path.
    zeros, ones = (0,) * len(table), (1,) * len(table)
    alone = PlacedGroup(device=zeros, forward=ones, backward=ones, messages=0.0, items=0.0)
    chosen = [
        (groups.find(size, segments), segments) if size in groups.sizes else (alone, 1)
        for size, segments in pairs.tolist()
    ]
    placed = [group for group, _ in chosen]
    most = max(group.devices for group in placed)
    segments = np.array([count for _, count in chosen], np.float64)

    def spread(values: Sequence[object] | Floats) -> Floats:
        """Spread values of each pair [pair, ...] to its cells [..., cells]."""
        of_pairs: Floats = np.moveaxis(np.array(values, np.float64), 0, -1)
        of_cells: Floats = of_pairs[..., at.reshape(pes.shape)]
        return of_cells

    return Placed(
        runs=spread([np.equal(np.arange(most)[:, None], group.device) for group in placed]),
        forward=spread([group.forward for group in placed]) / spread(segments),
        backward=spread([group.backward for group in placed]) / spread(segments),
        messages=spread([group.messages for group in placed]),
        items=spread([group.items for group in placed]) / spread(segments),
        received=spread([count_received(table, group, most) for group in placed]),
        segments=spread(segments),
    )


def count_received(table: LayerTable, group: PlacedGroup, devices: int) -> Floats:
    """Count items per sample that each device receives [device]; each tensor counts once."""
    pairs = {
        (maker, group.device[reader])
        for reader, makers in enumerate(table.inputs)
        for maker in makers
        if maker != SAMPLE and group.device[maker] != group.device[reader]
    }
    items = np.zeros(devices)
    for maker, device in pairs:
        items[device] += table.y[maker]
    return items
