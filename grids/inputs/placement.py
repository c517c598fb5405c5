"""Placement: which layers a group splits, along which dimensions, into which stages.

The discrete decisions of a strategy, made before the kernels run: the experiments' masks (ParaDL,
section 5: convolutions for filter and channel, convolutions and poolings for spatial as long as the
extents allow), the factors of a spatial split with the least halo, the best pipeline partition.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from grids.entries.strategies import DIMENSIONS, Strategy, Which
from grids.inputs.divisors import divisors
from grids.inputs.partition import stage_ends
from grids.models.layers import Floats, LayerTable
from kernels.group import Bounds, Placement
from kernels.layers import Layers
from kernels.options import Cuts
from kernels.spatial import layer_halo

Mask = tuple[bool, ...] | None

# Halos that differ by less are equal but for rounding.
TIE = 1 + 1e-9


def kernel_layers(table: LayerTable) -> Layers:
    """The table as the kernels take it: spatial dimensions lead, layers follow."""
    return Layers(
        x=table.x,
        y=table.y,
        w=table.w,
        bias=table.bias,
        flops=table.flops,
        channels=table.channels,
        filters=table.filters,
        extents_x=table.extents_x.T,
        extents_y=table.extents_y.T,
        kernel=table.kernel.T,
        convolution=table.convolutions.astype(float),
        volumetric=np.full(len(table), float((table.extents_x[:, 0] > 1).any())),
        elementwise=(~table.multiplying).astype(float),
        kept_items=table.kept_items,
        kept_bytes=table.kept_bytes,
        crossing=table.crossing,
        slowdown=np.ones(len(table)),
    )


Placed = tuple[Placement, Bounds]


def place(
    strategy: Strategy,
    table: LayerTable,
    mask: Mask,
    costs: Floats,
    p2: Floats,
    cuts: Cuts = "output",
) -> Placed:
    """Where the layers go for groups of `p2` PEs [cells]; `costs` [G, cells] are FW_l + BW_l.

    `mask` overrides which layers are split. Cells of p2 and of the costs broadcast. cuts: what one
    between two stages of a pipeline carries.
    """
    match strategy.group_strategy:
        case "none":
            return _place_whole(table, p2), _make_bounds(p2 == 1)
        case "pipeline":
            return _place_stages(table, costs, p2, cuts)
        case "spatial":
            return _place_parts(strategy, table, mask, p2)
        case "filter":
            split = _split(strategy.layers, mask, table.convolutions)
            return _place_channels(table, split, table.filters, p2)
        case "channel":
            # The first layer has the sample's few channels: the paper leaves it whole. It bounds no
            # group either, though `split=all` splits it.
            first = int(np.argmax(table.convolutions))
            later = table.convolutions & (np.arange(len(table)) != first)
            split = _split(strategy.layers, mask, later)
            inner = np.where(np.arange(len(table)) == 0, np.inf, table.channels)
            return _place_channels(table, split, inner, p2)


def _place_whole(table: LayerTable, p2: Floats) -> Placement:
    """Nothing is split."""
    column = (1,) * p2.ndim
    return Placement(
        split=np.zeros((len(table), *column)),
        factors=np.ones((3, *column)),
        ends=np.full((1, *column), len(table)),
    )


def _make_bounds(fits: NDArray[np.bool_]) -> Bounds:
    """The bounds of a group that either is too large, or splits evenly."""
    yes = np.ones(fits.shape, bool)
    return Bounds(fits=fits, even=yes, defined=yes)


def _split(which: Which, mask: Mask, default: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if mask is not None:
        return np.array(mask)
    return np.ones_like(default) if which == "all" else default


def _place_channels(
    table: LayerTable, split: NDArray[np.bool_], parts: Floats, p2: Floats
) -> Placed:
    """Filters or channels, `parts` [G] of each layer, divided by p2."""
    divided = parts[split & np.isfinite(parts)]
    least = divided.min(initial=np.inf) if split.any() else 1  # nothing to split is no group
    uneven = np.zeros(p2.shape, bool)
    # Counts repeat: the 13 convolutions of VGG-16 have four numbers of filters.
    for count in np.unique(divided):
        uneven |= np.remainder(count, p2) != 0
    column = split.astype(float).reshape(-1, *[1] * p2.ndim)
    return replace(_place_whole(table, p2), split=column), replace(
        _make_bounds(p2 <= least), even=~uneven
    )


def _place_stages(table: LayerTable, costs: Floats, p2: Floats, cuts: Cuts) -> Placed:
    """The best partition for each number of stages, under each of the costs."""
    defined = p2 <= len(table)  # a stage is a layer at least
    crossing = table.crossing if cuts == "crossing" else None
    stages, at = np.unique(np.where(defined, p2, len(table)).astype(np.int64), return_inverse=True)
    cells = np.broadcast_shapes(p2.shape, costs.shape[1:])
    ends = np.empty((int(stages.max()), *cells), np.int64)
    # Costs vary with the speed and the memory of a PE, where these are axes, and so do partitions.
    varying = costs.shape[1:]
    for index in product(*map(range, varying)):
        column: tuple[slice | int, ...] = (slice(None), *index)
        some = stage_ends(costs[column], stages, crossing)[:, at.reshape(p2.shape)]
        where = tuple(
            slice(None) if size == 1 else slice(i, i + 1)
            for i, size in zip(index, varying, strict=True)
        )
        ends[:, *where] = some
    return replace(_place_whole(table, p2), ends=ends), replace(
        _make_bounds(p2 <= _count_most_stages(table, cuts)), defined=defined
    )


def _count_most_stages(table: LayerTable, cuts: Cuts) -> int:
    """As many as layers (Table III), or as those that have work for a PE and follow each other."""
    return len(table) if cuts == "output" else max(table.depth, 1)


@dataclass(frozen=True)
class _Division:
    """One p2 divided into factors along (depth, height, width), and the layers that take part."""

    factors: tuple[int, int, int]
    split: NDArray[np.bool_]
    fits: bool
    even: bool
    defined: bool


def _place_parts(strategy: Strategy, table: LayerTable, mask: Mask, p2: Floats) -> Placed:
    counts, at = np.unique(p2.astype(np.int64), return_inverse=True)
    divisions = [_divide(table, strategy.dims, strategy.layers, mask, int(n)) for n in counts]
    at = at.reshape(p2.shape)
    flags = {
        name: np.array([getattr(each, name) for each in divisions])[at]
        for name in ("fits", "even", "defined")
    }
    split = np.stack([each.split for each in divisions], axis=1)[:, at].astype(float)
    factors = np.array([each.factors for each in divisions], float).T[:, at]
    return replace(_place_whole(table, p2), split=split, factors=factors), Bounds(**flags)


# Every block asks for its PE counts' again, of which an axis may have thousands.
@lru_cache(maxsize=16_384)
def _divide(table: LayerTable, dims: str | None, which: Which, mask: Mask, p2: int) -> _Division:
    """The factors that split the most layers; of those, with the least halo; of those, balanced."""
    factors = _list_factorisations(p2, _find_dimensions(table, dims))
    # Every PE has an item of its own at least, in and out.
    extents = np.minimum(table.extents_x, table.extents_y)
    allowed = (extents[:, :, None] >= factors[None]).all(axis=1)  # [G, n]
    wanted = _split(which, mask, table.windowed)
    fitting = wanted[:, None] & allowed
    free = mask is None and which == "default"  # layers that do not fit then stay whole
    split = fitting if free else np.broadcast_to(wanted[:, None], fitting.shape)
    best = _find_least_halo(table, factors, split, fitting.sum(axis=0))
    chosen = factors[:, best]
    parts = np.concatenate([table.extents_x[split[:, best]], table.extents_y[split[:, best]]])
    possible = bool(_find_dimensions(table, dims).any() and split[:, best].any())
    return _Division(
        factors=(int(chosen[0]), int(chosen[1]), int(chosen[2])),
        split=split[:, best],
        fits=p2 == 1 or (possible and bool((fitting == split)[:, best].all())),
        even=not possible or bool((np.remainder(parts, chosen) == 0).all()),
        defined=p2 == 1 or possible,
    )


def _find_dimensions(table: LayerTable, dims: str | None) -> NDArray[np.bool_]:
    """Which of (depth, height, width) may be split."""
    if dims is not None:
        return np.array([each in dims for each in DIMENSIONS])
    return np.asarray((table.extents_x > 1).any(axis=0))


def _list_factorisations(p2: int, dimensions: NDArray[np.bool_]) -> Floats:
    """All ordered (pd, ph, pw) with product p2 and 1 in the other dimensions [3, n].

    Balanced ones come first. Where no dimension may be split, all of p2 goes to the width, and
    nothing fits.
    """
    # All of them are tried: of 1,024 PEs there are 66 in three dimensions, 11 in two.
    pairs = product(divisors(p2), repeat=2)
    triples = [(d, h, p2 // (d * h)) for d, h in pairs if p2 % (d * h) == 0]
    free = [t for t in triples if all(n == 1 or may for n, may in zip(t, dimensions, strict=True))]
    free.sort(key=lambda t: (max(t), -t[2], -t[1]))
    return np.array(free or [(1, 1, p2)], float).T


def _find_least_halo(
    table: LayerTable, factors: Floats, split: NDArray[np.bool_], layers: NDArray[np.int64]
) -> int:
    sizes = kernel_layers(table)
    columns = replace(
        sizes,
        channels=table.channels[:, None],
        filters=table.filters[:, None],
        extents_x=sizes.extents_x[:, :, None],
        extents_y=sizes.extents_y[:, :, None],
        kernel=sizes.kernel[:, :, None],
    )
    halo = np.where(split, np.asarray(layer_halo(columns, factors)), 0).sum(axis=0)
    # Whoever splits fewer layers has less halo, and more to compute: it does not compete.
    halo = np.where(layers == layers.max(), halo, np.inf)
    return int(np.argmax(halo <= halo.min() * TIE))  # the first, which is the most balanced
