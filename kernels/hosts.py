"""Hosts: what passes through host memory, where PEs of a node do not see each other's.

Runs of ParaDL's authors (ChainerMN over MPI without GPUDirect) show it: gradients of weights that
all PEs of a group hold, and samples that a group shares (docs/machine.md, Through hosts). All of it
is 0 where a system states no `staging`.
"""

from kernels.arrays import Cells
from kernels.collectives import all_reduce
from kernels.group import GroupWork
from kernels.namespace import xp
from kernels.network import Link, Network, nodes
from kernels.rings import find_flow
from kernels.run import Run
from kernels.software import LARGE_MESSAGE, Software
from kernels.touched import count_shared


def count_staged(work: GroupWork, run: Run, network: Network) -> Cells:
    """m_s: bytes of gradients on their way through host memory.

    Of a spatial group's weights all; of a single filter or channel group's, what it does not
    divide, and each of its PEs therefore has gradients of.
    """
    several = xp.greater(run.p2, 1) & xp.equal(run.p1, 1)
    alone = xp.where(several, work.by_filter + work.by_channel, 0.0)
    spatial = xp.where(xp.greater(run.p, 1), work.replicated, 0.0)
    staged = xp.where(xp.isfinite(network.staging_bandwidth), spatial + alone, 0.0)
    weights = work.undivided
    if work.touched is not None:
        weights = weights + count_shared(work.touched, run.accumulate * run.batch)
    return run.gradient_delta * staged * weights


def exchange_staged(
    work: GroupWork, run: Run, network: Network, software: Software, slowest: Cells
) -> Cells:
    """AR inside each node, then between one PE of each; what is large is slow; slowest: z(n)."""
    m = count_staged(work, run, network)
    inside = xp.minimum(run.p, network.pes_per_node)
    within = Link(network.latency[0], 1 / network.bandwidth[0]).contended(run.phi)
    # One PE of each node: as the one ring of all PEs, they have its links to themselves.
    between = find_flow(network, run.p, run.p, xp.ones(())).contended(run.phi)
    others = nodes(run.p, network)
    levels = all_reduce(inside, m, within) + all_reduce(others, m, between)
    slow = time_large(m, network, software)
    # Leaders of nodes exchange a spatial group's gradients; in a single filter or channel group
    # each PE's own path through its host is as slow on one node as on many.
    leaders = (1 - 1 / others) * (1 + software.host_jitter * slowest)
    slow = slow * xp.where(xp.equal(work.replicated, 1), leaders, 1 - 1 / run.p)
    # Where nothing is staged there is no start-up either.
    return xp.where(m > 0, levels + 2 * slow, 0.0)


def pack_gradients(work: GroupWork, run: Run, network: Network, software: Software) -> Cells:
    """To host memory and back; by channel, what is large is slow here, too.

    One series of runs shows the latter, and no mechanism is known. It does not depend on where
    peers are: compute does not.
    """
    m = count_staged(work, run, network)
    copies = 2 * m * _invert(network) / software.packing
    return copies + work.by_channel * 2 * time_large(m, network, software)


def scatter_samples(
    work: GroupWork, run: Run, network: Network, software: Software, slowest: Cells
) -> Cells:
    """The part of a spatial group's samples that is slow on its way; slowest: z(n)."""
    m = run.batch * run.delta * work.sample
    slow = time_large(m, network, software) * (1 + software.host_jitter * slowest)
    return xp.where(xp.greater(run.p2, 1), work.replicated * slow, 0.0)


def time_large(m: Cells, network: Network, software: Software) -> Cells:
    """max(0, m - 256 MiB) / (large_message SB) [s]."""
    return xp.maximum(m - LARGE_MESSAGE, 0.0) * _invert(network) / software.large_message


def _invert(network: Network) -> Cells:
    """[s/B] through host memory: 0 where there is no such path, and its bandwidth is infinite."""
    return 1 / xp.asarray(network.staging_bandwidth)
