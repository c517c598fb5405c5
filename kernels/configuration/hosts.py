"""Hosts: what passes through host memory, where PEs of a node do not see each other's.

Runs of ParaDL's authors (ChainerMN over MPI without GPUDirect) show it: gradients of weights that
all PEs of a group hold, and samples that a group shares (docs/machine.md, Through hosts). All of it
is 0 where a system states no `staging`.
"""

from kernels.arrays import Cells
from kernels.configuration.run import Run
from kernels.machine.collectives import all_reduce
from kernels.machine.network import Link, Network
from kernels.machine.rings import Ring, find_path
from kernels.machine.software import LARGE_MESSAGE, Software
from kernels.namespace import xp
from kernels.work.group import GroupWork
from kernels.work.touched import count_shared


def count_staged(work: GroupWork, weights: Cells, run: Run, network: Network) -> Cells:
    """m_s: bytes of gradients of `weights` on their way through host memory."""
    staged = xp.where(xp.isfinite(network.staging_bandwidth), 1.0, 0.0)
    if work.touched is not None:
        shared = count_shared(work.touched, run.accumulate * run.batch)
        # Tables of all stages are taken off the weights of one.
        weights = xp.maximum(weights + shared, 0.0)
    return run.gradient_delta * staged * weights


def count_hosts(ring: Ring, network: Network) -> tuple[Cells, Cells]:
    """PEs of a ring that share a node, and its nodes."""
    pes = network.pes_per_node
    inside = xp.minimum(ring.degree, xp.maximum(pes / ring.count_beside(pes), 1.0))
    return inside, ring.degree / inside


def reduce_staged(m: Cells, ring: Ring, network: Network, phi: Cells, slow: Cells) -> Cells:
    """AR of m bytes inside each node, then between one PE of each; `slow`: seconds one way."""
    inside, others = count_hosts(ring, network)
    within = Link(network.latency[0], 1 / network.bandwidth[0]).contended(phi)
    # One PE of each node: as the one ring of all PEs, they have its links to themselves.
    between = find_path(network, ring).contended(phi)
    levels = all_reduce(inside, m, within) + all_reduce(others, m, between)
    # Where nothing is staged there is no start-up either.
    return xp.where(m > 0, levels + 2 * slow, 0.0)


def pack_gradients(m: Cells, network: Network, software: Software) -> Cells:
    """Seconds to copy gradients of m bytes to host memory and back."""
    return 2 * m * _invert(network) / software.packing


def time_large(m: Cells, network: Network, software: Software) -> Cells:
    """max(0, m - 256 MiB) / (large_message SB) [s]."""
    return xp.maximum(m - LARGE_MESSAGE, 0.0) * _invert(network) / software.large_message


def _invert(network: Network) -> Cells:
    """[s/B] through host memory: 0 where there is no such path, and its bandwidth is infinite."""
    return 1 / xp.asarray(network.staging_bandwidth)
