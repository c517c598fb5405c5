"""Alpha-beta costs of all-reduce, all-gather and point-to-point messages.

ParaDL, section 4.2 (ring: Thakur et al. 2005; tree: Sanders et al. 2009). q PEs, m bytes (the
whole gathered size), alpha [s], beta [s/B]. Each of `messages` collectives, of m bytes in total,
has a start-up.
"""

from paradl.kernels.arrays import Cells, xp
from paradl.kernels.options import Algorithm
from paradl.kernels.paper.network import TablePath


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
    return _choose(algorithm, ring, tree)


def all_reduce(
    q: Cells, m: Cells, path: TablePath, algorithm: Algorithm = "ring", messages: Cells = 1.0
) -> Cells:
    """Compute AR(q, m) = RS + AG [s]; by rings 2(q-1)(alpha + m/q beta)."""
    return 2 * all_gather(q, m, path, algorithm, messages)


def _choose(algorithm: Algorithm, ring: Cells, tree: Cells) -> Cells:
    if algorithm == "best":
        # Not affine in m, so layers cannot be summed first.
        return xp.minimum(ring, tree)
    return tree if algorithm == "tree" else ring
