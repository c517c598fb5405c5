"""Paths of Table III, the smallest level of the network that spans a ring, and costs on them.

ParaDL, section 4.2 (ring: Thakur et al. 2005; tree: Sanders et al. 2009). q PEs, m bytes (the
whole gathered size), alpha [s], beta [s/B]. Each of `messages` collectives, of m bytes in total,
has a start-up.
"""

from dataclasses import dataclass

from paradl.kernels.arrays import Cells, xp
from paradl.kernels.options import Algorithm
from paradl.kernels.paper.inputs import TableNetwork


@dataclass(frozen=True)
class TablePath:
    """Start-up `alpha` [s] and `beta` [s/B] of a flow's path."""

    alpha: Cells
    beta: Cells

    def contended(self, phi: Cells) -> "TablePath":
        """Return the path if `phi` flows share its bandwidth."""
        # They share bandwidth only; none of them starts later.
        return TablePath(self.alpha, xp.multiply(self.beta, phi))


def find_path(network: TableNetwork, q: Cells) -> TablePath:
    """Return the path of a ring of `q` PEs: the smallest level that spans them, or the last."""
    spans = xp.asarray(network.span)
    alphas, bandwidths = xp.asarray(network.latency), xp.asarray(network.bandwidth)
    alpha, bandwidth = alphas[-1], bandwidths[-1]
    # From the outermost inwards, so the smallest that spans q is chosen last. There are few levels,
    # and a chain of selects is elementwise, unlike a search.
    for level in reversed(range(spans.shape[0] - 1)):
        inside = xp.less_equal(q, spans[level])
        alpha = xp.where(inside, alphas[level], alpha)
        bandwidth = xp.where(inside, bandwidths[level], bandwidth)
    return TablePath(alpha, 1 / bandwidth)


def find_staged_path(network: TableNetwork, q: Cells) -> TablePath:
    """Return the path of a halo or split-point exchange among `q` PEs.

    The slowest pair of neighbours determines the time, and even in a group across nodes some
    neighbours share a node: staging bounds the path from below everywhere.
    """
    direct = find_path(network, q)
    return TablePath(
        xp.maximum(direct.alpha, network.staging_latency),
        # Without staging this is 1/inf = 0 s/B, so the direct path is the maximum.
        xp.maximum(direct.beta, 1 / xp.asarray(network.staging_bandwidth)),
    )


def point_to_point(m: Cells, path: TablePath, messages: Cells = 1.0) -> Cells:
    """Compute P2P(m) = alpha + m beta [s]."""
    return xp.asarray(messages * path.alpha + m * path.beta)


def all_gather(
    q: Cells, m: Cells, path: TablePath, algorithm: Algorithm = "ring", messages: Cells = 1.0
) -> Cells:
    """Compute AG(q, m) = RS(q, m) [s]: ring (q-1)(alpha + m/q beta), tree lb(q)(alpha + m beta)."""
    alpha, beta = path.alpha, path.beta
    # Both are 0 for q = 1, so one PE is no special case.
    ring = (q - 1) * (messages * alpha + m / q * beta)
    # Each step sends all of m, not m/q. log2(q) is not rounded between powers of two.
    tree = xp.log2(q) * (messages * alpha + m * beta)
    if algorithm == "best":
        # Not affine in m, so layers cannot be summed first.
        return xp.minimum(ring, tree)
    return tree if algorithm == "tree" else ring


def all_reduce(
    q: Cells, m: Cells, path: TablePath, algorithm: Algorithm = "ring", messages: Cells = 1.0
) -> Cells:
    """Compute AR(q, m) = RS + AG [s]; by rings 2(q-1)(alpha + m/q beta)."""
    return 2 * all_gather(q, m, path, algorithm, messages)
