"""Links between the devices that a graph is placed on.

What a message of m bytes takes from one to another is latency + m / bandwidth. In a mesh, a pair
that shares no link goes through neighbours, each of which has the whole message before it passes
it on: seconds a byte add up along the way, which is the quickest for large messages.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grids.entries.mesh import Mesh
from grids.entries.systems import System
from grids.reading.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Links:
    """Between devices: latency [s] and seconds a byte [s/B], both [M, M]; of a device to itself 0.

    pes: which PE of its node each device is.
    """

    latency: Floats
    seconds_per_byte: Floats
    pes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.pes)

    def time_message(self, size: float) -> Floats:
        """Seconds that so many bytes take from each device to each [M, M]."""
        return self.latency + size * self.seconds_per_byte

    @property
    def uniform(self) -> bool:
        """True if all pairs are alike: devices may be exchanged then."""
        apart = ~np.eye(len(self), dtype=bool)
        pairs = (self.latency[apart], self.seconds_per_byte[apart])
        return all(len(np.unique(values)) < 2 for values in pairs)


def link_devices(system: System, devices: int) -> Links:
    """The links of so many devices of one node of a system.

    Of a mesh those are taken that are joined best: the quickest pair, then one more at a time, so
    that more devices keep the links of fewer. InputError: a node has not so many.
    """
    if devices < 1 or devices > system.pes_per_node:
        raise InputError(
            f"expected 1 to {system.pes_per_node} devices, as many as a node of {system.name} has, "
            f"got {devices}",
            advice="a replica is placed inside a node; use more replicas to use more nodes",
        )
    node = system.levels[0]
    if system.mesh is None:
        apart = 1.0 - np.eye(devices)
        return Links(node.latency * apart, apart / node.bandwidth, tuple(range(devices)))
    hops, seconds = _find_ways(system.mesh)
    chosen = np.array(_choose_devices(seconds, devices))
    among = np.ix_(chosen, chosen)
    return Links(node.latency * hops[among], seconds[among], tuple(chosen.tolist()))


def _find_ways(mesh: Mesh) -> tuple[Floats, Floats]:
    """Links on the quickest way from each PE to each, and its seconds a byte [PEs, PEs]."""
    links = np.array(mesh.links, float)
    direct = links > 0
    seconds = np.full(links.shape, np.inf)
    seconds[direct] = 1 / (links[direct] * mesh.bandwidth)
    np.fill_diagonal(seconds, 0.0)
    hops = np.where(direct, 1.0, 0.0)
    for via in range(len(links)):  # Floyd and Warshall
        through = seconds[:, via, None] + seconds[None, via]
        better = through < seconds
        hops = np.where(better, hops[:, via, None] + hops[None, via], hops)
        seconds = np.minimum(through, seconds)
    return hops, seconds


def _choose_devices(seconds: Floats, devices: int) -> list[int]:
    """PEs that are joined best, ascending; of those that are alike, the first."""
    apart = np.where(np.eye(len(seconds), dtype=bool), np.inf, seconds)
    first, second = np.unravel_index(np.argmin(apart), apart.shape)
    chosen = [int(first), int(second)]
    while len(chosen) < devices:
        to_chosen = seconds[:, chosen].sum(axis=1)
        to_chosen[chosen] = np.inf
        chosen.append(int(np.argmin(to_chosen)))
    return sorted(chosen[:devices])
