"""Exchanges through host memory, if PEs of a node cannot access each other's memory.

These are gradients of weights that all PEs of a group hold, and samples that a group shares
(docs/machine.md, Through hosts), as runs of ParaDL's authors show (ChainerMN over MPI without
GPUDirect). All are 0 for systems without `staging`.
"""

from paradl.kernels.arrays import Cells, find_quantile, xp
from paradl.kernels.configuration.run import Run
from paradl.kernels.machine.network import Cost, Network, Ring, find_path
from paradl.kernels.machine.software import LARGE_MESSAGE, Software
from paradl.kernels.work.group import GroupWork, count_shared


def count_staged(work: GroupWork, weights: Cells, run: Run, network: Network) -> Cells:
    """Count bytes of gradients of `weights` that pass through host memory, m_s."""
    staged = xp.where(xp.isfinite(network.staging_bandwidth), 1.0, 0.0)
    if work.touched is not None:
        shared = count_shared(work.touched, run.accumulate * run.batch)
        # Subtracts the tables of all stages from the weights of one.
        weights = xp.maximum(weights + shared, 0.0)
    return run.gradient_delta * staged * weights


def count_hosts(ring: Ring, network: Network) -> tuple[Cells, Cells]:
    """Return PEs of a ring per node, and the number of its nodes."""
    pes = network.pes_per_node
    inside = xp.minimum(ring.degree, xp.maximum(pes / ring.count_touching(pes), 1.0))
    return inside, ring.degree / inside


def reduce_staged(m: Cells, ring: Ring, network: Network, phi: Cells, slow: Cells) -> Cells:
    """Compute seconds of an all-reduce of m bytes inside each node, then between nodes.

    slow: seconds one way for the part above LARGE_MESSAGE.
    """
    inside, others = count_hosts(ring, network)
    within = network.find_inside(ring.p).contended(phi)
    # With one PE per node, they use the links alone, like the single ring of all PEs.
    between = find_path(network, ring).contended(phi)
    levels = _reduce(inside, m, within) + _reduce(others, m, between)
    # Without staged bytes there is no start-up either.
    return xp.where(m > 0, levels + 2 * slow, 0.0)


def _reduce(q: Cells, m: Cells, path: Cost) -> Cells:
    """Compute seconds of a ring's all-reduce, 2 (q-1) (alpha + m/q beta)."""
    return 2 * ((q - 1) * (path.alpha + m / q * path.beta))


def pack_gradients(m: Cells, network: Network, software: Software) -> Cells:
    """Compute seconds to copy gradients of m bytes to host memory and back."""
    return 2 * m * _invert(network) / software.packing


def time_large(m: Cells, network: Network, software: Software) -> Cells:
    """Compute max(0, m - 256 MiB) / (large_message SB) [s]."""
    return xp.maximum(m - LARGE_MESSAGE, 0.0) * _invert(network) / software.large_message


def _invert(network: Network) -> Cells:
    """Return [s/B] through host memory; 0 without that path, whose bandwidth is then infinite."""
    return 1 / xp.asarray(network.staging_bandwidth)


def find_slowest(p: Cells) -> Cells:
    """Compute z(p), the expected maximum of p standard normal numbers (Blom 1958); 0 for p = 1."""
    return xp.where(xp.greater(p, 1), find_quantile((p - 0.375) / (p + 0.25)), 0.0)
