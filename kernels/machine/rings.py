"""Rings on rails: the share of a node's links, and of those beyond, that a ring's PEs get.

A group's PEs are neighbours, so its rings have stride 1; rings across replicas have the stride p2.
Symbols as in docs/machine.md, Network: S, PEs that a ring spans; P_j, PEs of level j; f_j, flows
that leave it at once; k PEs and L links per node. Only for the machine oracle: Table III gives
every ring the smallest level that spans it, and models shared links by one factor.
"""

from dataclasses import dataclass, replace

import jax

from kernels.arrays import Cells, Flags, divides, xp
from kernels.compiled import compiled
from kernels.machine.network import Link, Network


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Ring:
    """Ring of `degree` PEs at `stride`, in a run on p PEs."""

    degree: Cells
    stride: Cells
    p: Cells

    @property
    def span(self) -> Cells:
        """PEs that the ring spans, S = min(q s, p)."""
        return xp.minimum(self.degree * self.stride, self.p)

    def count_in(self, pes: Cells) -> Cells:
        """Count rings with PEs in a level of `pes` PEs, min(s, P_j)."""
        return xp.minimum(self.stride, pes)

    def count_touching(self, pes: Cells) -> Cells:
        """Count rings in a level including those that do not leave it."""
        return self.count_in(pes)

    def thin(self, share: Cells) -> "Ring":
        """Return the ring of one PE per node; this one has `share` PEs in each node."""
        return Ring(xp.ceil(self.degree / share), self.stride * share, self.p)


@dataclass(frozen=True)
class SpanningRing(Ring):
    """A ring with a given span."""

    reach: Cells

    @property
    def span(self) -> Cells:
        """PEs that the ring spans, as given."""
        return self.reach


@dataclass(frozen=True)
class ClusteredRing(SpanningRing):
    """A ring of clusters of PEs, one cluster per replica: `near` PEs each, `stride` apart.

    clusters: number of consecutive clusters of each of `stride` rings. several: whether there are
    several replicas; otherwise each cluster is a ring by itself. thinned: PEs per node of the ring
    that this one was thinned from, to one PE per node.
    """

    near: Cells
    clusters: Cells
    several: Flags
    thinned: Cells

    def count_in(self, pes: Cells) -> Cells:
        """Count rings with PEs in a level of `pes` PEs that also leave it."""
        rings = xp.where(self.several, self.count_touching(pes), self.stride)
        return xp.minimum(self.thinned * rings, pes)

    def count_touching(self, pes: Cells) -> Cells:
        """Count rings with PEs in a level of `pes` PEs."""
        clusters = xp.minimum(self.clusters, xp.ceil(pes / (self.near * self.stride)))
        return self.stride * clusters

    def thin(self, share: Cells) -> Ring:
        """Return the ring of one PE per node; this one has `share` PEs in each node."""
        return replace(self, degree=xp.ceil(self.degree / share), thinned=share)


def find_path(network: Network, ring: Ring) -> Link:
    """Return alpha and beta of one of the rings while all of them send."""
    levels = len(network.span)
    flows = [count_flows(network, ring, level) for level in range(levels - 1)]
    paths = [Link(network.latency[0], 1 / network.bandwidth[0])]
    for level in range(levels - 1):
        shared = _share_links(network, flows, level)
        shared = xp.maximum(shared, 1 / xp.asarray(network.flow))
        beyond = shared / (network.links_per_node * network.bandwidth[level + 1])
        # No flow is faster beyond a level than inside it.
        paths.append(Link(network.latency[level + 1], xp.maximum(paths[-1].beta, beyond)))
    chosen = paths[-1]
    # From the outermost inwards, so the smallest that holds the whole ring is chosen last.
    for level in reversed(range(levels - 1)):
        whole = _hold_whole(network.span[level], ring.p, ring.span)
        chosen = Link(
            xp.where(whole, paths[level].alpha, chosen.alpha),
            xp.where(whole, paths[level].beta, chosen.beta),
        )
    return chosen


def count_flows(network: Network, ring: Ring, level: int) -> Cells:
    """Count flows that leave a level at once, one per ring: f_j = min(P_j, c_j min(s, P_j))."""
    pes = network.span[level]
    # If rings straddle its borders, the level has the ends of two.
    rings = xp.where(is_cut(pes, ring.p, ring.span), 2.0, 1.0) * ring.count_in(pes)
    return xp.minimum(pes, rings)


def is_cut(pes: Cells, p: Cells, span: Cells) -> Flags:
    """True if rings straddle the borders of a level of `pes` PEs."""
    several = xp.greater(p, pes) & xp.greater(p, span)
    nested = divides(xp.minimum(pes, span), xp.maximum(pes, span))
    return several & xp.logical_not(nested)


def count_in_node(network: Network, ring: Ring) -> Cells:
    """Count PEs of a ring per node, h; 1 where that number differs between nodes."""
    pes = network.span[0]
    rings = ring.count_in(pes)
    aligned = divides(rings, pes) & xp.logical_not(is_cut(pes, ring.p, ring.span))
    return xp.where(aligned, xp.minimum(ring.degree, pes / rings), 1.0)


def count_chains(network: Network, ring: Ring) -> tuple[Cells, Cells]:
    """Return h_t, PEs of a tree's chain in a node, and n_t, its nodes."""
    pes = network.span[0]
    share = xp.minimum(ring.degree, xp.floor(pes / ring.count_in(pes)))
    # A ring across a border has one node more, so that a cut never makes a tree faster.
    extra = xp.where(is_cut(pes, ring.p, ring.span), 1.0, 0.0)
    return share, xp.ceil(ring.degree / share) + extra


def _hold_whole(pes: Cells, p: Cells, span: Cells) -> Flags:
    """True if a level holds only whole rings."""
    uncut = xp.less_equal(p, pes) | divides(span, pes)
    return xp.greater_equal(pes, span) & uncut


def _share_links(network: Network, flows: list[Cells], level: int) -> Cells:
    """Return max(f_0, k o_j f_j / P_j), the flows on a node's links or, per node, on a level's."""
    narrowing = 1.0 if network.oversubscription is None else network.oversubscription[level]
    beyond = network.pes_per_node * narrowing * flows[level] / network.span[level]
    return xp.maximum(flows[0], beyond)


@compiled(numpy=True)
def shared_links(network: Network, p: Cells, replicas: Cells, group: Cells) -> Cells:
    """Count flows per link of a node, at least 1: phi of rings with one PE of every group."""
    # One ring per PE of a group in the node. ABCI: 4 of them over 2 links, phi = 2.
    flows = xp.minimum(group, network.pes_per_node)
    # With one replica there are no rings, and inside a node they share no link.
    leaves_node = xp.greater(p, network.pes_per_node) & xp.greater(replicas, 1)
    return xp.where(leaves_node, xp.maximum(1.0, flows / network.links_per_node), 1.0)
