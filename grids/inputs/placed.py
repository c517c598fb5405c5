"""Placed groups as the kernels take them: which PE runs which layer, and the longest way."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grids.models.flow import SAMPLE, Floats
from grids.models.layers import LayerTable
from grids.placing.group import PlacedGroup, PlacedGroups
from kernels.work.group import Placed

Integers = NDArray[np.int64]


def stack_placed(table: LayerTable, groups: PlacedGroups, pes: Integers, cuts: Integers) -> Placed:
    """The placed groups of so many PEs [cells], of steps in so many segments [cells].

    Where there is no such group, one PE runs all layers at once.
    """
    pes, cuts = np.broadcast_arrays(pes, cuts)
    pairs, at = np.unique(
        np.stack([pes.ravel(), cuts.ravel()], axis=1), axis=0, return_inverse=True
    )
    alone = _place_alone(len(table))
    chosen = [
        (groups.find(size, segments), segments) if size in groups.sizes else (alone, 1)
        for size, segments in pairs.tolist()
    ]
    found = [group for group, _ in chosen]
    most = max(group.devices for group in found)
    segments = np.array([count for _, count in chosen], np.float64)

    def spread(values: Sequence[object] | Floats) -> Floats:
        """Values of each pair [pair, ...] as those of each cell [..., cells]."""
        of_pairs: Floats = np.moveaxis(np.array(values, np.float64), 0, -1)
        of_cells: Floats = of_pairs[..., at.reshape(pes.shape)]
        return of_cells

    return Placed(
        runs=spread([_mark_runs(group, most) for group in found]),
        forward=spread([group.forward for group in found]) / spread(segments),
        backward=spread([group.backward for group in found]) / spread(segments),
        messages=spread([group.messages for group in found]),
        items=spread([group.items for group in found]) / spread(segments),
        received=spread([count_received(table, group, most) for group in found]),
        segments=spread(segments),
    )


def _place_alone(layers: int) -> PlacedGroup:
    """All layers on one device: every one of them is on the critical path."""
    everywhere = (1,) * layers
    return PlacedGroup(
        device=(0,) * layers, forward=everywhere, backward=everywhere, messages=0.0, items=0.0
    )


def _mark_runs(group: PlacedGroup, devices: int) -> Floats:
    """1 where a device runs a layer [device, G]."""
    runs: Floats = np.equal(np.arange(devices)[:, None], np.array(group.device)).astype(np.float64)
    return runs


def count_received(table: LayerTable, group: PlacedGroup, devices: int) -> Floats:
    """Items a sample that come to each device from others [device]: each tensor once."""
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
