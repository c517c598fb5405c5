"""Placed groups as the kernels take them: which PE runs which layer, and the longest way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from grids.models.flow import Floats
from grids.models.layers import LayerTable
from grids.models.liveness import SAMPLE
from kernels.group import Placed


@dataclass(frozen=True)
class PlacedGroup:
    """A network's layers on the devices of one group (docs/placement.md).

    device [G]: of each layer, from 0. forward, backward [G]: whether a layer's forward (backward)
    pass is on the critical path. messages, items: start-ups that lie on it, and items a sample that
    pass there, each as often as its link is slower than the node's.
    """

    device: tuple[int, ...]
    forward: tuple[bool, ...]
    backward: tuple[bool, ...]
    messages: float
    items: float

    @property
    def devices(self) -> int:
        """How many of them have layers."""
        return max(self.device) + 1


class PlacedGroups(Protocol):
    """Groups of 2 to `most` devices, of which each may be found when it is asked for."""

    @property
    def most(self) -> int:
        """The devices of the largest, 1 where there is none."""

    def find(self, devices: int) -> PlacedGroup:
        """The group of so many devices."""


@dataclass(frozen=True)
class KnownGroups:
    """Groups that were found before, from that of two devices on."""

    groups: tuple[PlacedGroup, ...] = ()

    @property
    def most(self) -> int:
        return len(self.groups) + 1

    def find(self, devices: int) -> PlacedGroup:
        return self.groups[devices - 2]


NO_GROUPS = KnownGroups()


def stack_placed(table: LayerTable, groups: PlacedGroups, p2: NDArray[np.int64]) -> Placed:
    """The placed groups of `p2` PEs [cells]; where there is none, one PE runs all layers."""
    sizes, at = np.unique(p2, return_inverse=True)
    alone = _place_alone(len(table))
    chosen = [groups.find(size) if 2 <= size <= groups.most else alone for size in sizes.tolist()]
    most = max(each.devices for each in chosen)

    def spread(values: Sequence[object]) -> Floats:
        """Values of each size [size, ...] as those of each cell [..., cells]."""
        of_sizes = np.moveaxis(np.array(values, np.float64), 0, -1)
        return of_sizes[..., at.reshape(p2.shape)]

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
    return PlacedGroup((0,) * layers, everywhere, everywhere, messages=0.0, items=0.0)


def _mark_runs(group: PlacedGroup, devices: int) -> Floats:
    """1 where a device runs a layer [device, G]."""
    return (np.arange(devices)[:, None] == np.array(group.device)).astype(np.float64)


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
