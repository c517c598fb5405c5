"""Placed groups as the kernels take them: which PE runs which layer, and the longest way."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grids.models.flow import SAMPLE, Floats
from grids.models.layers import LayerTable
from grids.placing.group import PlacedGroup, PlacedGroups
from kernels.group import Placed


def stack_placed(table: LayerTable, groups: PlacedGroups, p2: NDArray[np.int64]) -> Placed:
    """The placed groups of `p2` PEs [cells]; where there is none, one PE runs all layers."""
    sizes, at = np.unique(p2, return_inverse=True)
    alone = _place_alone(len(table))
    chosen = [groups.find(size) if size in groups.sizes else alone for size in sizes.tolist()]
    most = max(each.devices for each in chosen)

    def spread(values: Sequence[object]) -> Floats:
        """Values of each size [size, ...] as those of each cell [..., cells]."""
        of_sizes: Floats = np.moveaxis(np.array(values, np.float64), 0, -1)
        of_cells: Floats = of_sizes[..., at.reshape(p2.shape)]
        return of_cells

    return Placed(
        runs=spread([_mark_runs(each, most) for each in chosen]),
        forward=spread([each.forward for each in chosen]),
        backward=spread([each.backward for each in chosen]),
        messages=spread([each.messages for each in chosen]),
        items=spread([each.items for each in chosen]),
        received=spread([count_received(table, each, most) for each in chosen]),
    )


def _place_alone(layers: int) -> PlacedGroup:
    """All layers on one device: every one of them is on the critical path."""
    everywhere = (True,) * layers
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
