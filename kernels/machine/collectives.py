"""Collective communication: the alpha-beta cost of all-reduce, all-gather and point-to-point.

ParaDL, section 4.2 (ring: Thakur et al. 2005; tree: Sanders et al. 2009). q PEs, m bytes (the
whole gathered size), alpha [s], beta [s/B]. `messages` collectives of m bytes in all cost one
start-up each.
"""

from kernels.arrays import Cells
from kernels.machine.network import Link
from kernels.namespace import xp
from kernels.options import Algorithm

# best: the cheaper of ring and tree, for each message (Table III); auto: the fastest of ring, tree
# and two-level, for each class of sizes (docs/machine.md).


def point_to_point(m: Cells, link: Link, messages: Cells = 1.0) -> Cells:
    """P2P(m) = alpha + m beta [s]."""
    return xp.asarray(messages * link.alpha + m * link.beta)


def all_gather(
    q: Cells, m: Cells, link: Link, algorithm: Algorithm = "ring", messages: Cells = 1.0
) -> Cells:
    """AG(q, m) = RS(q, m) [s]: ring (q-1)(alpha + m/q beta), tree log2(q)(alpha + m beta)."""
    alpha, beta = link.alpha, link.beta
    # Both are 0 for q = 1: one PE needs no case of its own.
    ring = (q - 1) * (messages * alpha + m / q * beta)
    # At each step all of m, not m/q. log2(q) stays a fraction between powers of two.
    tree = xp.log2(q) * (messages * alpha + m * beta)
    return _choose(algorithm, ring, tree)


def all_reduce(
    q: Cells, m: Cells, link: Link, algorithm: Algorithm = "ring", messages: Cells = 1.0
) -> Cells:
    """AR(q, m) [s]: a reduce-scatter and an all-gather, 2(q-1)(alpha + m/q beta) as rings."""
    return 2 * all_gather(q, m, link, algorithm, messages)


def _choose(algorithm: Algorithm, ring: Cells, tree: Cells) -> Cells:
    if algorithm == "best":
        # Not affine in m: no sum over the layers before it.
        return xp.minimum(ring, tree)
    return tree if algorithm == "tree" else ring
