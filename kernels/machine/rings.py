"""Rings on rails: what a ring's PEs have of a node's links, and of those beyond it.

A group's PEs are neighbours, its rings have stride 1; rings across replicas have the stride p2.
Symbols as in docs/machine.md, Network: S PEs that a ring spans; P_j of level j, f_j flows that
leave it at once; k PEs and L links a node. For the machine oracle: Table III gives every ring the
smallest level that spans it, and has no rings that share a link but for a hand-made factor.
"""

from dataclasses import dataclass, replace

import jax

from kernels.arrays import Cells, Flags
from kernels.machine.network import Link, Network
from kernels.namespace import divides, xp


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

    def count_in(self, pes: Cells) -> Cells:
        """Rings that have PEs in a level of so many PEs, min(s, P_j)."""
        return xp.minimum(self.stride, pes)

    def count_beside(self, pes: Cells) -> Cells:
        """The same, of those that do not leave it, too."""
        return self.count_in(pes)

    def thin(self, share: Cells) -> "Ring":
        """The ring of one PE of each node, where `share` PEs of this one are in each."""
        return Ring(xp.ceil(self.degree / share), self.stride * share, self.p)


@dataclass(frozen=True)
class SpanningRing(Ring):
    """A ring whose span is stated."""

    reach: Cells

    @property
    def span(self) -> Cells:
        """S as stated."""
        return self.reach


@dataclass(frozen=True)
class ClusteredRing(SpanningRing):
    """A ring of clusters of PEs, one in each replica: `near` PEs each, `stride` apart.

    clusters: so many of each of `stride` rings lie one after the other. several: whether there are
    other replicas; else each cluster is a ring by itself. thinned: PEs of such a ring that share a
    node, of which one alone is in this one.
    """

    near: Cells
    clusters: Cells
    several: Flags
    thinned: Cells

    def count_in(self, pes: Cells) -> Cells:
        """Rings that leave a level of so many PEs, which hold some of its PEs."""
        rings = xp.where(self.several, self.count_beside(pes), self.stride)
        return xp.minimum(self.thinned * rings, pes)

    def count_beside(self, pes: Cells) -> Cells:
        """Rings that have PEs in a level of so many PEs."""
        clusters = xp.minimum(self.clusters, xp.ceil(pes / (self.near * self.stride)))
        return self.stride * clusters

    def thin(self, share: Cells) -> Ring:
        """The ring of one PE of each node, where `share` PEs of this one are in each."""
        return replace(self, degree=xp.ceil(self.degree / share), thinned=share)


def find_path(network: Network, ring: Ring) -> Link:
    """alpha and beta of one of the rings, while all of them send."""
    levels = len(network.span)
    flows = [count_flows(network, ring, level) for level in range(levels - 1)]
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
        whole = _hold_whole(network.span[level], ring.p, ring.span)
        chosen = Link(
            xp.where(whole, paths[level].alpha, chosen.alpha),
            xp.where(whole, paths[level].beta, chosen.beta),
        )
    return chosen


def count_flows(network: Network, ring: Ring, level: int) -> Cells:
    """f_j = min(P_j, c_j min(s, P_j)): flows that leave a level at once, one a ring."""
    pes = network.span[level]
    # Where rings lie across its borders, the ends of two of them share it.
    rings = xp.where(is_cut(pes, ring.p, ring.span), 2.0, 1.0) * ring.count_in(pes)
    return xp.minimum(pes, rings)


def is_cut(pes: Cells, p: Cells, span: Cells) -> Flags:
    """True if rings lie across the borders of a level of so many PEs."""
    several = xp.greater(p, pes) & xp.greater(p, span)
    nested = divides(xp.minimum(pes, span), xp.maximum(pes, span))
    return several & xp.logical_not(nested)


def count_in_node(network: Network, ring: Ring) -> Cells:
    """h: PEs of a ring that share a node, the same number in each; 1 where it is not."""
    pes = network.span[0]
    rings = ring.count_in(pes)
    aligned = divides(rings, pes) & xp.logical_not(is_cut(pes, ring.p, ring.span))
    return xp.where(aligned, xp.minimum(ring.degree, pes / rings), 1.0)


def count_chains(network: Network, ring: Ring) -> tuple[Cells, Cells]:
    """h_t and n_t: PEs of a tree's chain in a node, and its nodes."""
    pes = network.span[0]
    share = xp.minimum(ring.degree, xp.floor(pes / ring.count_in(pes)))
    # Of a ring that lies across a border, a node more: no cut makes a tree faster.
    more = xp.where(is_cut(pes, ring.p, ring.span), 1.0, 0.0)
    return share, xp.ceil(ring.degree / share) + more


def _hold_whole(pes: Cells, p: Cells, span: Cells) -> Flags:
    """True if a level holds whole rings alone."""
    uncut = xp.less_equal(p, pes) | divides(span, pes)
    return xp.greater_equal(pes, span) & uncut


def _share_links(network: Network, flows: list[Cells], level: int) -> Cells:
    """max(f_0, k o_j f_j / P_j): flows that the links of a node carry, or those of a level."""
    narrower = 1.0 if network.oversubscription is None else network.oversubscription[level]
    of_level = network.pes_per_node * narrower * flows[level] / network.span[level]
    return xp.maximum(flows[0], of_level)
