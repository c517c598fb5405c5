"""Links between the devices on which a graph is placed.

A message of m bytes takes latency + m / bandwidth. In a mesh, a pair without a link goes through
neighbours, each of which receives the whole message before passing it on: seconds per byte add up
along the path with the least, the best one for large messages.
"""

from dataclasses import dataclass

import numpy as np

from paradl.grids.entries.connections import Mesh
from paradl.grids.entries.systems import System
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Floats


@dataclass(frozen=True, eq=False)
class Links:
    """Latency [s] and seconds per byte [s/B] between devices, both [M, M] with a zero diagonal.

    pes: the PE of the node that each device is.
    """

    latency: Floats
    seconds_per_byte: Floats
    pes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.pes)

    def time_message(self, size: float) -> Floats:
        """Time of a message of `size` bytes between each pair of devices [s, M by M]."""
        return self.latency + size * self.seconds_per_byte


def link_devices(system: System, devices: int) -> Links:
    """Return the links of this many devices in one node of a system.

    In a mesh the best-connected PEs are taken: the quickest pair, then one more at a time, so more
    devices keep the links of fewer. InputError: the node has fewer devices.
    """
    if devices < 1 or devices > system.pes_per_node:
        raise InputError(
            f"expected 1 to {system.pes_per_node} devices, a node of {system.name}, got {devices}"
        )
    node = system.levels[0]
    # Behind a switch, all pairs are alike.
    if system.mesh is None:
        apart = 1.0 - np.eye(devices)
        return Links(node.latency * apart, apart / node.bandwidth, tuple(range(devices)))
    hops, seconds = _find_ways(system.mesh)
    chosen = np.array(_choose_devices(seconds, devices))
    among = np.ix_(chosen, chosen)
    # Every hop starts a message anew.
    return Links(node.latency * hops[among], seconds[among], tuple(chosen.tolist()))


def _find_ways(mesh: Mesh) -> tuple[Floats, Floats]:
    """Return the links on the quickest path between PEs, and its seconds per byte [PEs, PEs]."""
    links = np.array(mesh.links, float)
    direct = links > 0
    seconds = np.full(links.shape, np.inf)
    # A message is spread over all links of a pair.
    seconds[direct] = 1 / (links[direct] * mesh.bandwidth)
    np.fill_diagonal(seconds, 0.0)
    # Those of the path with the least seconds per byte, which need not be the fewest.
    hops = np.where(direct, 1.0, 0.0)
    for via in range(len(links)):  # Floyd-Warshall
        through = seconds[:, via, None] + seconds[None, via]
        better = through < seconds
        hops = np.where(better, hops[:, via, None] + hops[None, via], hops)
        seconds = np.minimum(through, seconds)
    return hops, seconds


def _choose_devices(seconds: Floats, devices: int) -> list[int]:
    """Choose the best-connected PEs, ascending; the first of equals."""
    # No PE is a pair with itself.
    apart = np.where(np.eye(len(seconds), dtype=bool), np.inf, seconds)
    first, second = np.unravel_index(np.argmin(apart), apart.shape)
    chosen = [int(first), int(second)]
    while len(chosen) < devices:
        to_chosen = seconds[:, chosen].sum(axis=1)
        to_chosen[chosen] = np.inf
        chosen.append(int(np.argmin(to_chosen)))
    return sorted(chosen[:devices])  # of a single device, the pair's first
