"""Placed groups in the form that kernels take: which PE runs which layer, and the critical path."""

from collections.abc import Sequence

import numpy as np

from grids.models.flow import SAMPLE
from grids.models.layers import LayerTable
from grids.placing.group import PlacedGroup, PlacedGroups
from kernels.names.arrays import Floats, Integers
from kernels.work.group import Placed


def stack_placed(table: LayerTable, groups: PlacedGroups, pes: Integers, cuts: Integers) -> Placed:
    """Stack the placed groups for PE counts [cells] and segments [cells].

    Where no such group exists, one PE runs all layers in one piece.
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
    placed = [group for group, _ in chosen]
    most = max(group.devices for group in placed)
    segments = np.array([count for _, count in chosen], np.float64)

    def spread(values: Sequence[object] | Floats) -> Floats:
        """Spread values of each pair [pair, ...] to its cells [..., cells]."""
        of_pairs: Floats = np.moveaxis(np.array(values, np.float64), 0, -1)
        of_cells: Floats = of_pairs[..., at.reshape(pes.shape)]
        return of_cells

    return Placed(
        runs=spread([_mark_runs(group, most) for group in placed]),
        forward=spread([group.forward for group in placed]) / spread(segments),
        backward=spread([group.backward for group in placed]) / spread(segments),
        messages=spread([group.messages for group in placed]),
        items=spread([group.items for group in placed]) / spread(segments),
        received=spread([count_received(table, group, most) for group in placed]),
        segments=spread(segments),
    )


def _place_alone(layers: int) -> PlacedGroup:
    """Return the group of all layers on one device, where all are on the critical path."""
    everywhere = (1,) * layers
    return PlacedGroup(
        device=(0,) * layers, forward=everywhere, backward=everywhere, messages=0.0, items=0.0
    )


def _mark_runs(group: PlacedGroup, devices: int) -> Floats:
    """Return 1 where a device runs a layer [device, G]."""
    runs: Floats = np.equal(np.arange(devices)[:, None], np.array(group.device)).astype(np.float64)
    return runs


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
