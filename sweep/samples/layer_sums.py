"""Features of a model that are sums over some of its layers: those that a strategy divides, those
that move much for what they compute, those with few channels.

A learner that has seen no relative of a network can tell from them how long its layers take. None
knows a machine, or an oracle's parameters.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats, LayerTable
from sweep.samples.model_features import Read, make_features

Flags = NDArray[np.bool_]
Column = Callable[[LayerTable], Floats]
Choose = Callable[[LayerTable], Flags]
# Stages of a pipeline that a network is cut into, by multiply-accumulates.
STAGES = (2, 4, 8)
# Factors of the rows along each spatial dimension.
FACTORS = (2, 4)


def _sum(values: Floats, chosen: Flags) -> float:
    return float(values[chosen].sum())


def _count_macs(table: LayerTable) -> Floats:
    """Multiply-accumulates a sample, forward [G]."""
    return np.where(table.multiplying, table.flops / 2, 0.0)


def _count_moved(table: LayerTable) -> Floats:
    """Items that each layer reads and writes a sample [G]."""
    return table.x + table.y


def _sum_narrow(table: LayerTable, narrow: Floats) -> float:
    """Multiply-accumulates over channels, or filters, or both: narrow layers weigh more in them."""
    return _sum(_count_macs(table) / np.maximum(narrow, 1.0), table.multiplying)


def _sum_fetched(table: LayerTable) -> float:
    grouped = table.convolutions & (table.groups > 1)
    return _sum(_count_macs(table) * table.groups / np.maximum(table.filters, 1.0), grouped)


def _rank_intensity(table: LayerTable, percent: int) -> float:
    """Operations an item below which so many percent of the multiplying layers' items lie."""
    chosen = table.multiplying
    if not chosen.any():
        return 0.0
    moved = _count_moved(table)[chosen]
    intensity = table.flops[chosen] / np.maximum(moved, 1.0)
    order = np.argsort(intensity)
    at = np.searchsorted(np.cumsum(moved[order]), percent / 100 * moved.sum())
    return float(intensity[order][min(int(at), len(order) - 1)])


def _find_later(table: LayerTable) -> Flags:
    """The layers of which a group splits channels: not the first, nor depthwise ones [G]."""
    first = np.arange(len(table)) == int(np.argmax(table.divisible))
    channels = table.divisible_channels
    return np.asarray(table.divisible & ~first & ((channels > 1) | (table.groups == 1)))


def _find_overlapping(table: LayerTable) -> Flags:
    """The layers whose windows overlap: neighbours exchange rows for them [G]."""
    return np.asarray(table.windowed & (table.kernel > table.stride).any(axis=1))


def _sum_halo(table: LayerTable) -> float:
    """Items of the rows that neighbouring halves of a sample have in common, over all layers."""
    rows = np.maximum(table.kernel - table.stride, 0.0) / 2
    planes = table.x[:, None] / np.maximum(table.extents_x, 1.0)
    return float((rows * planes)[_find_overlapping(table)].sum())


def _sum_chosen(read: Column, choose: Choose, table: LayerTable) -> float:
    return _sum(read(table), choose(table))


def _sum_rows(read: Column, factor: int, table: LayerTable) -> float:
    """The sum on the fullest PE where the last two dimensions are divided by a factor."""
    extents = np.maximum(table.extents_y[:, 1:], 1.0)
    parts = np.ceil(extents / factor) / extents
    return float((read(table) * parts.prod(axis=1)).sum())


def _cut_stages(macs: Floats, stages: int) -> NDArray[np.int64]:
    """The stage of each layer [G], each with about as many multiply-accumulates."""
    middle = np.cumsum(macs) - macs / 2
    parts = (middle / max(macs.sum(), 1.0) * stages).astype(np.int64)
    return np.asarray(np.minimum(parts, stages - 1))


def _find_fullest(read: Column, stages: int, table: LayerTable) -> float:
    at = _cut_stages(_count_macs(table), stages)
    return float(np.bincount(at, read(table), stages).max())


def _find_crossing(table: LayerTable, stages: int) -> float:
    """Items a sample at the widest of the cuts between stages."""
    at = _cut_stages(_count_macs(table), stages)
    ends = np.flatnonzero(np.diff(at))
    return float(table.crossing[ends].max(initial=0.0))


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
ALONE: dict[str, tuple[str, Read]] = {
    "moved_items": (
        "items a sample that layers without weights to multiply by read and write",
        lambda table: _sum(_count_moved(table), ~table.multiplying),
    ),
    "multiplied_items": (
        "items a sample that layers that multiply read and write",
        lambda table: _sum(_count_moved(table), table.multiplying),
    ),
    "macs_over_channels": (
        "multiply-accumulates over channels, summed",
        lambda table: _sum_narrow(table, table.channels),
    ),
    "macs_over_filters": (
        "multiply-accumulates over filters, summed",
        lambda table: _sum_narrow(table, table.filters),
    ),
    "macs_over_both": (
        "multiply-accumulates over channels and filters, summed",
        lambda table: _sum_narrow(table, table.channels * table.filters),
    ),
    "fetched_items": (
        "items a sample that grouped convolutions fetch for the filters of a group",
        _sum_fetched,
    ),
    "sequential_steps": (
        "products a sample that wait for each other",
        lambda table: _sum(table.steps, table.steps > 1),
    ),
    "sequential_macs": (
        "multiply-accumulates a sample of products that wait for each other",
        lambda table: _sum(_count_macs(table), table.steps > 1),
    ),
    "read_weights": (
        "weights, each as often as a pass reads it",
        lambda table: (table.reads * table.w).sum(),
    ),
    **{
        f"intensity_p{percent}": (
            f"operations an item, {percent}th percentile over items of layers that multiply",
            partial(_rank_intensity, percent=percent),
        )
        for percent in (10, 25, 50, 75)
    },
}
DIVIDED: dict[str, tuple[str, Read]] = {
    "divisible_outputs": (
        "items of output a sample of layers whose filters a group divides",
        lambda table: _sum(table.y, table.divisible),
    ),
    "later_outputs": (
        "items of output a sample of layers whose channels a group divides",
        lambda table: _sum(table.y, _find_later(table)),
    ),
    "divisible_layers": (
        "layers whose filters a group divides",
        lambda table: table.divisible.sum(),
    ),
    "weighted_layers": ("layers with weights", lambda table: (table.w > 0).sum()),
    "halo_layers": ("layers whose windows overlap", lambda table: _find_overlapping(table).sum()),
    "halo_items": ("items a sample of the rows that windows share", _sum_halo),
}
CROSSING: dict[str, tuple[str, Read]] = {
    f"stage{stages}_crossing": (
        f"items a sample at the widest cut between {stages} such stages",
        partial(_find_crossing, stages=stages),
    )
    for stages in STAGES
}


def _list_chosen() -> Iterator[tuple[str, tuple[str, Read]]]:
    for (chosen, (of, choose)), (summed, (words, read)) in product(CHOSEN.items(), SUMMED.items()):
        yield f"{chosen}_{summed}", (f"{words}, {of}", partial(_sum_chosen, read, choose))


def _list_rows() -> Iterator[tuple[str, tuple[str, Read]]]:
    for factor, (summed, (words, read)) in product(FACTORS, SUMMED.items()):
        part = f"of the fullest part where height and width are divided by {factor}"
        if summed != "weights":
            yield f"rows{factor}_{summed}", (f"{words}, {part}", partial(_sum_rows, read, factor))


def _list_stages() -> Iterator[tuple[str, tuple[str, Read]]]:
    for stages, (summed, (words, read)) in product(STAGES, SUMMED.items()):
        part = f"of the fullest of {stages} stages with about as many multiply-accumulates"
        yield f"stage{stages}_{summed}", (f"{words}, {part}", partial(_find_fullest, read, stages))


# Their order is that of columns, and of the hash that divides problems (`sweep.samples.splits`).
LAYER_SUMS = make_features(
    ALONE | dict(_list_chosen()) | DIVIDED | dict(_list_rows()) | dict(_list_stages()) | CROSSING
)
