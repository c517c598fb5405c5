"""Features of a model: counts, sizes and sums over its layers, for samples of one shape.

Sums over kinds of layers (those that a strategy divides, that are bound by memory, that have few
channels) let a learner predict networks unlike any in training. No feature here depends on a
machine or on parameters of an oracle.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.systems import System
from paradl.grids.models.kinds import KINDS
from paradl.grids.models.layers import LayerTable
from paradl.kernels.names.arrays import Flags, Floats

Read = Callable[[LayerTable], float]
Column = Callable[[LayerTable], Floats]
Choose = Callable[[LayerTable], Flags]
Source = TypeVar("Source", System, LayerTable)


@dataclass(frozen=True)
class Feature:
    """Unit and meaning of an input of learners."""

    unit: str
    meaning: str


@dataclass(frozen=True)
class ReadFeature(Feature, Generic[Source]):
    """A feature that is read from a machine, or from a network, for samples of one shape."""

    read: Callable[[Source], float]


def _count_kind(kind: str, table: LayerTable) -> float:
    return table.kinds.count(kind)


def _count_macs(table: LayerTable) -> Floats:
    """Count multiply-accumulates per sample, forward [layer]."""
    return np.where(table.multiplying, table.flops / 2, 0.0)


def _count_moved(table: LayerTable) -> Floats:
    """Count items read and written per sample [layer]."""
    return table.x + table.y


def _is_split_by_channel(table: LayerTable) -> Flags:
    """True where groups divide channels: not in the first layer or depthwise ones [layer]."""
    first = np.arange(len(table)) == int(np.argmax(table.divisible))
    channels = table.divisible_channels
    return np.asarray(table.divisible & ~first & ((channels > 1) | (table.groups == 1)))


def _has_halo(table: LayerTable) -> Flags:
    """True where windows overlap, so that neighbours exchange rows [layer]."""
    return np.asarray(table.windowed & (table.kernel > table.stride).any(axis=1))


def _sum(read: Column, choose: Choose, table: LayerTable) -> float:
    return float(read(table)[choose(table)].sum())


def _find_least(values: Floats, chosen: Flags) -> float:
    """Return the least of the chosen values; 0 if there are none."""
    return float(values[chosen].min()) if chosen.any() else 0.0


def _find_least_channels(table: LayerTable) -> float:
    # The first layer has few channels, those of the sample, and is not split by them.
    later = np.arange(len(table)) != int(np.argmax(table.convolutions))
    return _find_least(table.channels, table.convolutions & later)


def _rank_sizes(column: str, percent: int, table: LayerTable) -> float:
    """Return a percentile over layers that multiply by weights; 0 if there are none."""
    values = getattr(table, column)[table.multiplying]
    return float(np.percentile(values, percent)) if values.size else 0.0


def _rank_intensity(percent: int, table: LayerTable) -> float:
    """Return a percentile of operations per item, over the items of multiplying layers."""
    chosen = table.multiplying
    if not chosen.any():
        return 0.0
    moved = _count_moved(table)[chosen]
    intensity = table.flops[chosen] / np.maximum(moved, 1.0)
    order = np.argsort(intensity)
    at = np.searchsorted(np.cumsum(moved[order]), percent / 100 * moved.sum())
    return float(intensity[order][min(int(at), len(order) - 1)])


def _sum_narrow(narrow: Column, table: LayerTable) -> float:
    """Sum multiply-accumulates over widths: narrow layers, which are less efficient, weigh more."""
    return float((_count_macs(table) / np.maximum(narrow(table), 1.0))[table.multiplying].sum())


def _sum_fetched(table: LayerTable) -> float:
    grouped = table.convolutions & (table.groups > 1)
    fetched = _count_macs(table) * table.groups / np.maximum(table.filters, 1.0)
    return float(fetched[grouped].sum())


def _sum_halo(table: LayerTable) -> float:
    """Count items of the rows that two halves of a sample share, over all layers."""
    rows = np.maximum(table.kernel - table.stride, 0.0) / 2
    planes = table.x[:, None] / np.maximum(table.extents_x, 1.0)
    return float((rows * planes)[_has_halo(table)].sum())


def _sum_rows(read: Column, factor: int, table: LayerTable) -> float:
    """Sum over the fullest PE's part if the last two dimensions are divided by a factor."""
    extents = np.maximum(table.extents_y[:, 1:], 1.0)
    parts = np.ceil(extents / factor) / extents
    return float((read(table) * parts.prod(axis=1)).sum())


def _cut_stages(stages: int, table: LayerTable) -> NDArray[np.int64]:
    """Assign layers to stages of about equal multiply-accumulates [layer]."""
    macs = _count_macs(table)
    middle = np.cumsum(macs) - macs / 2
    parts = (middle / max(macs.sum(), 1.0) * stages).astype(np.int64)
    return np.asarray(np.minimum(parts, stages - 1))


def _find_fullest(read: Column, stages: int, table: LayerTable) -> float:
    return float(np.bincount(_cut_stages(stages, table), read(table), stages).max())


def _find_crossing(stages: int, table: LayerTable) -> float:
    """Count items per sample at the widest cut between stages."""
    ends = np.flatnonzero(np.diff(_cut_stages(stages, table)))
    return float(table.crossing[ends].max(initial=0.0))


# Percentiles of sizes; parts of height and width; numbers of pipeline stages.
QUANTILES, FACTORS, STAGES = (10, 50, 90), (2, 4), (2, 4, 8)
SIZES = {"flops": "operations per sample, forward", "w": "weights", "y": "output items per sample"}
SUMMED: dict[str, tuple[str, Column]] = {
    "macs": ("multiply-accumulates per sample, forward", _count_macs),
    "items": ("items per sample, read and written", _count_moved),
    "kept": ("items per sample kept for the backward pass", lambda table: table.kept_items),
    "weights": ("weights", lambda table: table.w),
}
CHOSEN: dict[str, tuple[str, Choose]] = {
    "convolution": ("of convolutions", lambda table: table.convolutions),
    "windowed": ("of layers with windows", lambda table: table.windowed),
    "divisible": ("of layers whose filters a group divides", lambda table: table.divisible),
    "later": ("of layers whose channels a group divides", _is_split_by_channel),
}
# Widths of layers by which multiply-accumulates are divided.
NARROW: dict[str, tuple[str, Column]] = {
    "channels": ("channels", lambda table: table.channels),
    "filters": ("filters", lambda table: table.filters),
    "both": ("channels and filters", lambda table: table.channels * table.filters),
}
# Kinds without a column: with more of them, data sets made before would be refused, and the split
# random be another.
UNCOUNTED = ("scan", "short_conv", "lora_sum")
# This is the order of the columns and of the hash in `splits`: reordering changes the split random.
ROWS: dict[str, tuple[str, Read]] = {
    "layer_count": ("layers", len),
    **{
        f"{kind}_layers": (f"layers of the kind {kind}", partial(_count_kind, kind))
        for kind in KINDS
        if kind not in UNCOUNTED
    },
    "parameter_count": ("weights and biases", lambda table: table.parameters),
    "macs": ("multiply-accumulates per sample, forward", lambda table: table.macs),
    "activations": ("output items of all layers per sample", lambda table: table.y.sum()),
    "kept_activations": (SUMMED["kept"][0], lambda table: table.kept_items.sum()),
    "largest_activation": ("items per sample of the largest output", lambda table: table.y.max()),
    "largest_weights": ("weights of the largest layer", lambda table: table.w.max()),
    "largest_crossing": ("items per sample at the widest cut", lambda table: table.crossing.max()),
    "intensity": (
        "operations per item read or written",
        lambda table: table.flops.sum() / (table.x.sum() + table.y.sum() + table.w.sum()),
    ),
    "depth": ("layers that multiply, on the longest path", lambda table: table.depth),
    "sample_items": ("items per sample", lambda table: table.x[0]),
    "dimensions": ("spatial dimensions", lambda table: 3.0 if table.volumetric else 2.0),
    "least_filters": (
        "fewest filters of a convolution",
        lambda table: _find_least(table.filters, table.convolutions),
    ),
    "least_channels": (
        "fewest channels of a convolution, except for the first one",
        _find_least_channels,
    ),
    **{
        f"layer_{column}_p{percent}": (
            f"{percent}th percentile of {words}, over layers that multiply",
            partial(_rank_sizes, column, percent),
        )
        for (column, words), percent in product(SIZES.items(), QUANTILES)
    },
    "moved_items": (
        "items per sample read and written by layers that do not multiply by weights",
        partial(_sum, _count_moved, lambda table: ~table.multiplying),
    ),
    "multiplied_items": (
        "items per sample read and written by layers that multiply",
        partial(_sum, _count_moved, lambda table: table.multiplying),
    ),
    **{
        f"macs_over_{name}": (
            f"sum of multiply-accumulates over {words}",
            partial(_sum_narrow, narrow),
        )
        for name, (words, narrow) in NARROW.items()
    },
    "fetched_items": (
        "items per sample that grouped convolutions fetch for the filters of a group",
        _sum_fetched,
    ),
    "sequential_steps": (
        "sequential products per sample, in recurrent layers",
        partial(_sum, lambda table: table.steps, lambda table: table.steps > 1),
    ),
    "sequential_macs": (
        "multiply-accumulates per sample of recurrent layers",
        partial(_sum, _count_macs, lambda table: table.steps > 1),
    ),
    "read_weights": (
        "weights, counted as often as a pass reads them",
        lambda table: (table.reads * table.w).sum(),
    ),
    **{
        f"intensity_p{percent}": (
            f"operations per item, {percent}th percentile over items of layers that multiply",
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
        f"output items per sample {CHOSEN['divisible'][0]}",
        partial(_sum, lambda table: table.y, lambda table: table.divisible),
    ),
    "later_outputs": (
        f"output items per sample {CHOSEN['later'][0]}",
        partial(_sum, lambda table: table.y, _is_split_by_channel),
    ),
    "divisible_layers": (
        "layers whose filters a group divides",
        lambda table: table.divisible.sum(),
    ),
    "weighted_layers": ("layers with weights", lambda table: (table.w > 0).sum()),
    "halo_layers": ("layers whose windows overlap", lambda table: _has_halo(table).sum()),
    "halo_items": ("items per sample in rows that two halves share", _sum_halo),
    **{
        f"rows{factor}_{summed}": (
            f"{words}, of the largest part when height and width are divided by {factor}",
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
            f"items per sample at the widest cut between {stages} such stages",
            partial(_find_crossing, stages),
        )
        for stages in STAGES
    },
}
MODEL = {name: ReadFeature("1", meaning, read) for name, (meaning, read) in ROWS.items()}
