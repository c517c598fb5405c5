"""Paths of Table III: every ring has the smallest level of the network that spans it."""

from dataclasses import dataclass

from paradl.kernels.arrays import Cells, xp
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
