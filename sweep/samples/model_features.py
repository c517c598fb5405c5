"""Features of a model: counts, sizes and sums over its layers, for samples of one shape.

From sums over some of its layers (those that a strategy divides, those that move much for what they
compute, those with few channels) a learner can tell how long a network takes that has no relative
in training. None of them depends on a machine, or on an oracle's parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from grids.models.kinds import KINDS
from grids.models.layers import Flags, Floats, LayerTable

Read = Callable[[LayerTable], float]
Column = Callable[[LayerTable], Floats]
Choose = Callable[[LayerTable], Flags]


@dataclass(frozen=True)
class Feature:
    """A number that learners are given for each row."""

    unit: str
    meaning: str


@dataclass(frozen=True)
class ModelFeature(Feature):
    """A number of a network's layers, for samples of one shape."""

    read: Read


def _count_kind(kind: str, table: LayerTable) -> float:
    return table.kinds.count(kind)


def _count_macs(table: LayerTable) -> Floats:
    """Multiply-accumulates a sample, forward [layer]."""
    return np.where(table.multiplying, table.flops / 2, 0.0)


def _count_moved(table: LayerTable) -> Floats:
    """Items that each layer reads and writes a sample [layer]."""
    return table.x + table.y


def _find_later(table: LayerTable) -> Flags:
    """The layers whose channels a group splits: neither the first, nor depthwise ones [layer]."""
    first = np.arange(len(table)) == int(np.argmax(table.divisible))
    channels = table.divisible_channels
    return np.asarray(table.divisible & ~first & ((channels > 1) | (table.groups == 1)))


def _find_overlapping(table: LayerTable) -> Flags:
    """The layers whose windows overlap: neighbours exchange rows for them [layer]."""
    return np.asarray(table.windowed & (table.kernel > table.stride).any(axis=1))


def _sum(read: Column, choose: Choose, table: LayerTable) -> float:
    return float(read(table)[choose(table)].sum())


def _find_least(values: Floats, chosen: Flags) -> float:
    """The least of the chosen values; 0 where there are none."""
    return float(values[chosen].min()) if chosen.any() else 0.0


def _find_least_channels(table: LayerTable) -> float:
    # The first layer has the sample's few channels, and is not split (grids/inputs/placement.py).
    later = np.arange(len(table)) != int(np.argmax(table.convolutions))
    return _find_least(table.channels, table.convolutions & later)


def _rank_sizes(column: str, percent: int, table: LayerTable) -> float:
    """A percentile over the layers that multiply by weights; 0 where none does."""
    values = getattr(table, column)[table.multiplying]
    return float(np.percentile(values, percent)) if values.size else 0.0


def _rank_intensity(percent: int, table: LayerTable) -> float:
    """The operations an item below which so many percent of the multiplying layers' items lie."""
    chosen = table.multiplying
    if not chosen.any():
        return 0.0
    moved = _count_moved(table)[chosen]
    intensity = table.flops[chosen] / np.maximum(moved, 1.0)
    order = np.argsort(intensity)
    at = np.searchsorted(np.cumsum(moved[order]), percent / 100 * moved.sum())
    return float(intensity[order][min(int(at), len(order) - 1)])


def _sum_narrow(narrow: Column, table: LayerTable) -> float:
    """Multiply-accumulates over channels, or filters, or both: narrow layers weigh more in them."""
    return float((_count_macs(table) / np.maximum(narrow(table), 1.0))[table.multiplying].sum())


def _sum_fetched(table: LayerTable) -> float:
    grouped = table.convolutions & (table.groups > 1)
    fetched = _count_macs(table) * table.groups / np.maximum(table.filters, 1.0)
    return float(fetched[grouped].sum())


def _sum_halo(table: LayerTable) -> float:
    """Items of the rows that neighbouring halves of a sample have in common, over all layers."""
    rows = np.maximum(table.kernel - table.stride, 0.0) / 2
    planes = table.x[:, None] / np.maximum(table.extents_x, 1.0)
    return float((rows * planes)[_find_overlapping(table)].sum())


def _sum_rows(read: Column, factor: int, table: LayerTable) -> float:
    """The sum on the fullest PE where the last two dimensions are divided by a factor."""
    extents = np.maximum(table.extents_y[:, 1:], 1.0)
    parts = np.ceil(extents / factor) / extents
    return float((read(table) * parts.prod(axis=1)).sum())


def _cut_stages(stages: int, table: LayerTable) -> NDArray[np.int64]:
    """The stage of each layer, where stages have about equal multiply-accumulates [layer]."""
    macs = _count_macs(table)
    middle = np.cumsum(macs) - macs / 2
    parts = (middle / max(macs.sum(), 1.0) * stages).astype(np.int64)
    return np.asarray(np.minimum(parts, stages - 1))


def _find_fullest(read: Column, stages: int, table: LayerTable) -> float:
    return float(np.bincount(_cut_stages(stages, table), read(table), stages).max())


def _find_crossing(stages: int, table: LayerTable) -> float:
    """Items a sample at the widest of the cuts between stages."""
    ends = np.flatnonzero(np.diff(_cut_stages(stages, table)))
    return float(table.crossing[ends].max(initial=0.0))


# Percentiles of sizes, factors of the rows along a dimension, and numbers of a pipeline's stages.
QUANTILES, FACTORS, STAGES = (10, 50, 90), (2, 4), (2, 4, 8)
SIZES = {"flops": "operations a sample, forward", "w": "weights", "y": "items of output a sample"}
SUMMED: dict[str, tuple[str, Column]] = {
    "macs": ("multiply-accumulates a sample, forward", _count_macs),
    "items": ("items a sample, read and written", _count_moved),
    "kept": ("items a sample that the backward pass reads", lambda table: table.kept_items),
    "weights": ("weights", lambda table: table.w),
}
CHOSEN: dict[str, tuple[str, Choose]] = {
    "convolution": ("of convolutions", lambda table: table.convolutions),
    "windowed": ("of layers with windows", lambda table: table.windowed),
    "divisible": ("of layers whose filters a group divides", lambda table: table.divisible),
    "later": ("of layers whose channels a group divides", _find_later),
}
# Multiply-accumulates over these widths of layers, summed.
NARROW: dict[str, tuple[str, Column]] = {
    "channels": ("channels", lambda table: table.channels),
    "filters": ("filters", lambda table: table.filters),
    "both": ("channels and filters", lambda table: table.channels * table.filters),
}
# Their order is that of the columns, and of the hash that divides problems (`splits`).
ROWS: dict[str, tuple[str, Read]] = {
    "layer_count": ("layers", len),
    **{
        f"{kind}_layers": (f"layers of the kind {kind}", partial(_count_kind, kind))
        for kind in KINDS
    },
    "parameter_count": ("weights and biases", lambda table: table.parameters),
    "macs": ("multiply-accumulates a sample, forward", lambda table: table.macs),
    "activations": ("items of all layers' outputs a sample", lambda table: table.y.sum()),
    "kept_activations": (SUMMED["kept"][0], lambda table: table.kept_items.sum()),
    "largest_activation": ("items a sample of the largest output", lambda table: table.y.max()),
    "largest_weights": ("weights of the layer with the most", lambda table: table.w.max()),
    "largest_crossing": ("items a sample of the largest cut", lambda table: table.crossing.max()),
    "intensity": (
        "operations an item that is read or written",
        lambda table: table.flops.sum() / (table.x.sum() + table.y.sum() + table.w.sum()),
    ),
    "depth": ("layers that multiply, on the longest way", lambda table: table.depth),
    "sample_items": ("items of a sample", lambda table: table.x[0]),
    "dimensions": ("spatial dimensions", lambda table: 3.0 if table.volumetric else 2.0),
    "least_filters": (
        "filters of the convolution with the fewest",
        lambda table: _find_least(table.filters, table.convolutions),
    ),
    "least_channels": (
        "channels of the convolution with the fewest, but the first",
        _find_least_channels,
    ),
    **{
        f"layer_{column}_p{percent}": (
            f"{percent}th percentile over layers that multiply of {words}",
            partial(_rank_sizes, column, percent),
        )
        for (column, words), percent in product(SIZES.items(), QUANTILES)
    },
    "moved_items": (
        "items a sample that layers without weights to multiply by read and write",
        partial(_sum, _count_moved, lambda table: ~table.multiplying),
    ),
    "multiplied_items": (
        "items a sample that layers that multiply read and write",
        partial(_sum, _count_moved, lambda table: table.multiplying),
    ),
    **{
        f"macs_over_{name}": (
            f"multiply-accumulates over {words}, summed",
            partial(_sum_narrow, narrow),
        )
        for name, (words, narrow) in NARROW.items()
    },
    "fetched_items": (
        "items a sample that grouped convolutions fetch for the filters of a group",
        _sum_fetched,
    ),
    "sequential_steps": (
        "products a sample that wait for each other",
        partial(_sum, lambda table: table.steps, lambda table: table.steps > 1),
    ),
    "sequential_macs": (
        "multiply-accumulates a sample of products that wait for each other",
        partial(_sum, _count_macs, lambda table: table.steps > 1),
    ),
    "read_weights": (
        "weights, each as often as a pass reads it",
        lambda table: (table.reads * table.w).sum(),
    ),
    **{
        f"intensity_p{percent}": (
            f"operations an item, {percent}th percentile over items of layers that multiply",
            partial(_rank_intensity, percent),
        )
        for percent in (10, 25, 50, 75)
    },
    **{
        f"{chosen}_{summed}": (f"{words}, {group}", partial(_sum, read, choose))
        for (chosen, (group, choose)), (summed, (words, read)) in product(
            CHOSEN.items(), SUMMED.items()
        )
    },
    "divisible_outputs": (
        f"items of output a sample {CHOSEN['divisible'][0]}",
        partial(_sum, lambda table: table.y, lambda table: table.divisible),
    ),
    "later_outputs": (
        f"items of output a sample {CHOSEN['later'][0]}",
        partial(_sum, lambda table: table.y, _find_later),
    ),
    "divisible_layers": (
        "layers whose filters a group divides",
        lambda table: table.divisible.sum(),
    ),
    "weighted_layers": ("layers with weights", lambda table: (table.w > 0).sum()),
    "halo_layers": ("layers whose windows overlap", lambda table: _find_overlapping(table).sum()),
    "halo_items": ("items a sample of the rows that windows share", _sum_halo),
    **{
        f"rows{factor}_{summed}": (
            f"{words}, of the fullest part where height and width are divided by {factor}",
            partial(_sum_rows, read, factor),
        )
        for factor, (summed, (words, read)) in product(FACTORS, SUMMED.items())
        if summed != "weights"
    },
    **{
        f"stage{stages}_{summed}": (
            f"{words}, of the fullest of {stages} stages with about equal multiply-accumulates",
            partial(_find_fullest, read, stages),
        )
        for stages, (summed, (words, read)) in product(STAGES, SUMMED.items())
    },
    **{
        f"stage{stages}_crossing": (
            f"items a sample at the widest cut between {stages} such stages",
            partial(_find_crossing, stages),
        )
        for stages in STAGES
    },
}
MODEL = {name: ModelFeature("1", meaning, read) for name, (meaning, read) in ROWS.items()}
