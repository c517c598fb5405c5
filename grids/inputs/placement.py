"""Placement: which layers a group splits, along which dimensions, into which stages.

The discrete decisions of a strategy, made before the kernels run: the experiments' masks (ParaDL,
section 5: convolutions for filter and channel, convolutions and poolings for spatial as long as the
extents allow; of sequences, the linear layers), the factors of a spatial split, the best pipeline
partition.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from grids.entries.strategies import Which
from grids.inputs.factors import Rows, Storage, divide_rows
from grids.inputs.layers import Mask, add_cells, kernel_layers, split_layers
from grids.inputs.partition import stage_ends
from grids.inputs.placed import stack_placed
from grids.models.layers import Floats, LayerTable
from grids.placing.group import NO_GROUPS, PlacedGroups
from kernels.names.parallelisms import Divided
from kernels.namespace import use_numpy
from kernels.options import Cuts
from kernels.work.group import Bounds, Placement
from kernels.work.rows import row_share

Laid = tuple[Placement, Bounds]


@dataclass(frozen=True, eq=False)
class Rules:
    """A table's layers, and how they are divided.

    mask: overrides which layers are split; dims, layers: the strategy's own choice of these.
    storage: where memory has a say in how rows are divided. cuts: what one between two stages of a
    pipeline carries. verbatim: layers are counted and divided as Table III has them, else as the
    experiments did. groups: what was placed; segments [cells]: of a step of theirs. costs
    [G, cells]: FW_l + BW_l, of stages alone. crossing [G, cells]: what cuts carry of a PE's own
    rows, whole tensors by default.
    """

    table: LayerTable
    mask: Mask = None
    dims: str | None = None
    layers: Which = "default"
    storage: Storage | None = None
    cuts: Cuts = "output"
    verbatim: bool = False
    groups: PlacedGroups = NO_GROUPS
    segments: Floats = field(default_factory=partial(np.ones, ()))  # steps are not cut
    costs: Floats | None = None
    crossing: Floats | None = None


def place(divided: Divided | None, degree: Floats, rules: Rules) -> Laid:
    """Where a parallelism that divides so puts the layers, for each degree [cells]."""
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


def _find_channels(table: LayerTable) -> tuple[NDArray[np.bool_], Floats]:
    """The layers whose channels are divided, and how many each layer has [G]."""
    # The first layer has the sample's few channels: the paper leaves it whole. It bounds no
    # group either, though `split=all` splits it.
    first = int(np.argmax(table.divisible))
    later = table.divisible & (np.arange(len(table)) != first)
    # Filters of one channel, of a depthwise convolution, have none to divide: it is whole.
    channels = table.divisible_channels
    later &= (channels > 1) | (table.groups == 1)
    return later, np.where(np.arange(len(table)) == 0, np.inf, channels)


def join_laid(laid: Mapping[str, Laid]) -> Laid:
    """Where several parallelisms, by name, put the layers together, and whether all of them can."""
    if len(laid) == 1:
        return next(iter(laid.values()))
    placements = {name: placement for name, (placement, _) in laid.items()}
    splits = {name: each.split for name, each in placements.items()}
    bounds = [each for _, each in laid.values()]
    return Placement(
        split=reduce(np.maximum, splits.values()),
        # One of them at most divides rows, and one has stages: others have ones, and one stage.
        factors=reduce(np.maximum, (each.factors for each in placements.values())),
        ends=max((each.ends for each in placements.values()), key=len),
        splits=splits,
        crossing=next(
            (one.crossing for one in placements.values() if one.crossing is not None), None
        ),
    ), Bounds(
        fits=reduce(np.logical_and, (each.fits for each in bounds)),
        even=reduce(np.logical_and, (each.even for each in bounds)),
        defined=reduce(np.logical_and, (each.defined for each in bounds)),
    )


def _place_whole(table: LayerTable, degree: Floats) -> Placement:
    """Nothing is split."""
    column = (1,) * degree.ndim
    return Placement(
        split=np.zeros((len(table), *column)),
        factors=np.ones((3, *column)),
        ends=np.full((1, *column), len(table)),
    )


def _make_bounds(fits: NDArray[np.bool_]) -> Bounds:
    """The bounds of a group that either is too large, or splits evenly."""
    yes = np.ones(fits.shape, bool)
    return Bounds(fits=fits, even=yes, defined=yes)


def _place_planes(rules: Rules, wanted: NDArray[np.bool_], parts: Floats, degree: Floats) -> Laid:
    """Filters or channels, `parts` [G] of each layer, divided."""
    split = split_layers(rules.layers, rules.mask, wanted)
    divided = parts[split & np.isfinite(parts)]
    least = divided.min(initial=np.inf) if split.any() else 1  # nothing to split is no group
    uneven = np.zeros(degree.shape, bool)
    # Counts repeat: the 13 convolutions of VGG-16 have four numbers of filters.
    for count in np.unique(divided):
        uneven |= np.remainder(count, degree) != 0
    column = split.astype(float).reshape(-1, *[1] * degree.ndim)
    return replace(_place_whole(rules.table, degree), split=column), replace(
        _make_bounds(degree <= least), even=~uneven
    )


def _place_operators(rules: Rules, degree: Floats) -> Laid:
    """Layers on the devices that were found for them; one device runs all."""
    table, groups = rules.table, rules.groups
    known = np.isin(degree, [1, *groups.sizes])
    placed = stack_placed(table, groups, degree.astype(np.int64), rules.segments.astype(np.int64))
    laid = replace(_place_whole(table, degree), placed=placed)
    fits = degree <= max(groups.sizes, default=1)
    return laid, replace(_make_bounds(fits), even=known, defined=known)


def cross_rows(table: LayerTable, factors: Floats) -> Floats:
    """Items a sample [G, cells] of the fullest PE's rows that cross a cut behind each layer."""
    layers = add_cells(kernel_layers(table), factors.ndim - 1)
    with use_numpy():
        sample, y = (row_share(each, factors) for each in (layers.extents_x, layers.extents_y))
    return table.cross_parts(np.asarray(sample)[0], np.asarray(y))


def _place_stages(rules: Rules, degree: Floats) -> Laid:
    """The best partition for each number of stages, under each of the costs."""
    table, costs, own = rules.table, rules.costs, rules.crossing
    assert costs is not None  # stages balance them
    starts = table.layer_starts if rules.verbatim else np.arange(len(table))
    layers, costs = len(starts), np.add.reduceat(costs, starts, axis=0)
    rows = np.append(starts[1:], len(table))  # where each layer ends
    defined = degree <= layers  # a stage is a layer at least
    stages, at = np.unique(np.where(defined, degree, layers).astype(np.int64), return_inverse=True)
    own_cells = () if own is None else own.shape[1:]
    cells = np.broadcast_shapes(degree.shape, costs.shape[1:], own_cells)
    # Costs vary with the speed and the memory of a PE, where these are axes, and with the part of
    # layers that it has; so do partitions.
    columns = [costs]
    if rules.cuts == "crossing":
        whole = table.crossing.reshape(-1, *[1] * (costs.ndim - 1))
        columns.append(whole if own is None else own)
    both = np.stack(np.broadcast_arrays(*columns))
    varying = both.shape[2:]
    distinct, which = np.unique(both.reshape(*both.shape[:2], -1), axis=2, return_inverse=True)
    found = np.stack(
        [
            rows[stage_ends(each[0], stages, each[1] if len(each) > 1 else None) - 1]
            for each in np.moveaxis(distinct, 2, 0)
        ]
    )
    column = np.broadcast_to(which.reshape(varying), cells)
    ends = np.moveaxis(found[column, :, np.broadcast_to(at.reshape(degree.shape), cells)], -1, 0)
    return replace(_place_whole(table, degree), ends=ends, crossing=own), replace(
        # As many as layers (Table III), or as those that have work for a PE and follow each other.
        _make_bounds(degree <= (layers if rules.cuts == "output" else max(table.depth, 1))),
        defined=defined,
    )


def _place_parts(rules: Rules, degree: Floats) -> Laid:
    """Rows divided."""
    rows = Rows(rules.table, rules.dims, rules.layers, rules.mask, rules.storage, rules.verbatim)
    counts, at = np.unique(degree.astype(np.int64), return_inverse=True)
    divisions = [divide_rows(rows, int(n)) for n in counts]
    at = at.reshape(degree.shape)
    flags = {
        name: np.array([getattr(each, name) for each in divisions])[at]
        for name in ("fits", "even", "defined")
    }
    split = np.stack([each.split for each in divisions], axis=1)[:, at].astype(float)
    factors = np.array([each.factors for each in divisions], float).T[:, at]
    return replace(_place_whole(rows.table, degree), split=split, factors=factors), Bounds(**flags)
