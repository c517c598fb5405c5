"""Rings on rails: what a ring's PEs have of a node's links, and of those beyond it.

A group's PEs are neighbours, its rings have stride 1; rings across replicas have the stride p2.
Symbols as in docs/machine.md, Network: S PEs that a ring spans; P_j of level j, f_j flows that
leave it at once; k PEs and L links a node. For the machine oracle: Table III gives every ring the
smallest level that spans it, and has no rings that share a link but for a hand-made factor.
"""

from dataclasses import dataclass

import jax

from kernels.arrays import Cells, Flags
from kernels.machine.network import Link, Network
from kernels.namespace import xp
from kernels.whole import divides


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Ring:
    """`degree` PEs at `stride`, in a run on p PEs."""

    degree: Cells
    stride: Cells
    p: Cells

    @property
    def span(self) -> Cells:
        """S = min(q s, p)."""
        return xp.minimum(self.degree * self.stride, self.p)


def find_path(network: Network, ring: Ring) -> Link:
    """alpha and beta of one of the rings, while all of them send."""
    return find_flow(network, ring.p, ring.span, ring.stride)


def find_flow(network: Network, p: Cells, span: Cells, stride: Cells) -> Link:
    """alpha and beta of flows at `stride` inside groups that span so many of p PEs."""
    levels = len(network.span)
    flows = [count_flows(network, p, span, stride, level) for level in range(levels - 1)]
    paths = [Link(network.latency[0], 1 / network.bandwidth[0])]
    for level in range(levels - 1):
        shared = _share_links(network, flows, level)
        shared = xp.maximum(shared, 1 / xp.asarray(network.flow))
        beyond = shared / (network.links_per_node * network.bandwidth[level + 1])
        # No flow is faster on its way than where it begins.
        paths.append(Link(network.latency[level + 1], xp.maximum(paths[-1].beta, beyond)))
    chosen = paths[-1]
    # From the outermost inwards: the smallest that holds all of a ring is chosen last.
    for level in reversed(range(levels - 1)):
        whole = _hold_whole(network.span[level], p, span)
        chosen = Link(
            xp.where(whole, paths[level].alpha, chosen.alpha),
            xp.where(whole, paths[level].beta, chosen.beta),
        )
    return chosen


def count_flows(network: Network, p: Cells, span: Cells, stride: Cells, level: int) -> Cells:
    """f_j = min(P_j, c_j min(s, P_j)): flows that leave a level at once, one a ring."""
    pes = network.span[level]
    # Where rings lie across its borders, the ends of two of them share it.
    rings = xp.where(is_cut(pes, p, span), 2.0, 1.0) * xp.minimum(stride, pes)
    return xp.minimum(pes, rings)


def is_cut(pes: Cells, p: Cells, span: Cells) -> Flags:
    """Whether rings lie across the borders of a level of so many PEs."""
    several = xp.greater(p, pes) & xp.greater(p, span)
    nested = divides(xp.minimum(pes, span), xp.maximum(pes, span))
    return several & xp.logical_not(nested)


def count_in_node(network: Network, ring: Ring) -> Cells:
    """h: PEs of a ring that share a node, the same number in each; 1 where it is not."""
    pes = network.span[0]
    aligned = divides(ring.stride, pes) & xp.logical_not(is_cut(pes, ring.p, ring.span))
    return xp.where(aligned, xp.minimum(ring.degree, pes / ring.stride), 1.0)


def count_chains(network: Network, ring: Ring) -> tuple[Cells, Cells]:
    """h_t and n_t: PEs of a tree's chain in a node, and its nodes."""
    pes = network.span[0]
    share = xp.minimum(ring.degree, xp.maximum(xp.floor(pes / ring.stride), 1.0))
    # Of a ring that lies across a border, a node more: no cut makes a tree faster.
    more = xp.where(is_cut(pes, ring.p, ring.span), 1.0, 0.0)
    return share, xp.ceil(ring.degree / share) + more


def _hold_whole(pes: Cells, p: Cells, span: Cells) -> Flags:
    """Whether a level holds whole rings alone."""
    uncut = xp.less_equal(p, pes) | divides(span, pes)
    return xp.greater_equal(pes, span) & uncut


def _share_links(network: Network, flows: list[Cells], level: int) -> Cells:
    """max(f_0, k o_j f_j / P_j): flows that the links of a node carry, or those of a level."""
    narrower = 1.0 if network.oversubscription is None else network.oversubscription[level]
    of_level = network.pes_per_node * narrower * flows[level] / network.span[level]
    return xp.maximum(flows[0], of_level)
