"""The network: latency and bandwidth that a ring of PEs sees.

A machine is a list of levels (node, leaf switch, rack ...), each spanning a number of PEs. Symbols:
alpha, the start-up of a message [s]; beta [s/B]; phi >= 1, the contention of a flow, which
multiplies beta (ParaDL, sections 4.2 and 5.2.3).

Rings are on rails: each gets a share of a node's links, and of those beyond. A group's PEs are
neighbours, so its rings have stride 1; rings across replicas have the stride p2. Symbols as in
docs/machine.md, Network: Q, PEs that a ring spans; P_j, PEs of level j; i_j, rings with PEs in it;
f_j, flows that leave it at once; L links per node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from paradl.kernels.arrays import Cells, Flags, PerLevel, divides, pytree, xp


@pytree
class Cost:
    """Cost of messages on a path, or of collectives: `alpha` [s for each] and `beta` [s/B]."""

    alpha: Cells
    beta: Cells

    def time(self, m: Cells, messages: Cells) -> Cells:
        """Compute seconds of `messages` messages of m bytes in total."""
        return messages * self.alpha + m * self.beta

    def contended(self, phi: Cells) -> "Cost":
        """Return the cost if `phi` flows share the bandwidth."""
        # They share bandwidth only; none of them starts later.
        return Cost(self.alpha, xp.multiply(self.beta, phi))


# Factors on latencies and bandwidths by level, for each line. Not stacked: an array with fewer
# dimensions than the cells is constant over them.
MeasuredLines = tuple[tuple[PerLevel, PerLevel], ...]


@pytree
class Network:
    """Levels in ascending `span` [PEs], each with `latency` [s] and `bandwidth` [B/s].

    staging_*: path through host memory that halo and split-point exchanges take if PEs of a node
    cannot access each other's memory (latency 0 and infinite bandwidth if they can). input_rate
    [samples/s]: per node. oversubscription [level]: bandwidth of its nodes' links over the
    bandwidth that leaves it. flow: largest share of a node's links that one flow can use. size:
    PEs of the machine. whole_gradients: gradients leave as one message, by rings. measured: lines
    by collective (`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`), of which the fastest
    counts. switch_latency [s]: start-up of a collective that the switches of a node sum and
    multicast; None: its PEs do. shared [B/s]: bandwidth that all PEs of a node together have.
    """

    span: PerLevel
    latency: PerLevel
    bandwidth: PerLevel
    pes_per_node: Cells
    links_per_node: Cells
    staging_bandwidth: Cells
    staging_latency: Cells
    phi_halo: Cells
    phi_gather: Cells
    input_rate: Cells = float("inf")
    oversubscription: PerLevel | None = None
    flow: Cells = float("inf")
    size: Cells = float("inf")
    whole_gradients: Flags | bool = False
    measured: Mapping[str, MeasuredLines] | None = None
    switch_latency: Cells | None = None
    shared: Cells = float("inf")

    def find_inside(self, p: Cells) -> Cost:
        """Return the cost of a message inside a node while all its PEs of a run on p send."""
        sending = xp.minimum(p, self.span[0])
        return Cost(self.latency[0], xp.maximum(1 / self.bandwidth[0], sending / self.shared))

    def list_lines(self, collective: str) -> tuple["Network", ...]:
        """List the network as each measured line of a collective has it; empty if not measured."""
        return tuple(
            replace(
                self,
                latency=_scale_levels(self.latency, latency),
                bandwidth=_scale_levels(self.bandwidth, bandwidth),
                measured=None,
            )
            for latency, bandwidth in (self.measured or {}).get(collective, ())
        )


def _scale_levels(values: PerLevel, factors: PerLevel) -> PerLevel:
    """Multiply values [level, ...] by a factor per level."""
    return values * xp.reshape(factors, (-1, *[1] * (xp.ndim(values) - 1)))


def nodes(p: Cells, network: Network) -> Cells:
    """Count nodes, n = max(1, p / PEs of a node)."""
    # Not rounded up: a half-full node counts as half.
    return xp.maximum(p / network.pes_per_node, 1.0)


@pytree
class Ring:
    """Ring of `degree` PEs at `stride`, in a run on p PEs."""

    degree: Cells
    stride: Cells
    p: Cells

    @property
    def span(self) -> Cells:
        """PEs that the ring spans, Q = min(q r, p)."""
        return xp.minimum(self.degree * self.stride, self.p)

    def count_in(self, pes: Cells) -> Cells:
        """Count rings with PEs in a level of `pes` PEs, i_j = min(r, P_j)."""
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


def find_path(network: Network, ring: Ring) -> Cost:
    """Return alpha and beta of one of the rings while all of them send."""
    levels = len(network.span)
    flows = [count_flows(network, ring, level) for level in range(levels - 1)]
    paths = [network.find_inside(ring.p)]
    for level in range(levels - 1):
        # max(f_0, P_0 o_j f_j / P_j): flows on a node's links or, per node, on a level's.
        narrowing = 1.0 if network.oversubscription is None else network.oversubscription[level]
        crossing = network.pes_per_node * narrowing * flows[level] / network.span[level]
        shared = xp.maximum(xp.maximum(flows[0], crossing), 1 / xp.asarray(network.flow))
        beyond = shared / (network.links_per_node * network.bandwidth[level + 1])
        # No flow is faster beyond a level than inside it.
        paths.append(Cost(network.latency[level + 1], xp.maximum(paths[-1].beta, beyond)))
    chosen = paths[-1]
    # From the outermost inwards, so the smallest level that holds whole rings is chosen last.
    for level in reversed(range(levels - 1)):
        pes = network.span[level]
        uncut = xp.less_equal(ring.p, pes) | divides(ring.span, pes)
        whole = xp.greater_equal(pes, ring.span) & uncut
        chosen = Cost(
            xp.where(whole, paths[level].alpha, chosen.alpha),
            xp.where(whole, paths[level].beta, chosen.beta),
        )
    return chosen


def count_flows(network: Network, ring: Ring, level: int) -> Cells:
    """Count flows that leave a level at once, one per ring: f_j = min(P_j, i_j or 2 i_j)."""
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
    """Count PEs of a ring per node, q_0; 1 where that number differs between nodes."""
    pes = network.span[0]
    rings = ring.count_in(pes)
    aligned = divides(rings, pes) & xp.logical_not(is_cut(pes, ring.p, ring.span))
    return xp.where(aligned, xp.minimum(ring.degree, pes / rings), 1.0)


def count_chains(network: Network, ring: Ring) -> tuple[Cells, Cells]:
    """Return q_t, PEs of a tree's chain in a node, and n_t, its nodes."""
    pes = network.span[0]
    share = xp.minimum(ring.degree, xp.floor(pes / ring.count_in(pes)))
    # A ring across a border has one node more, so that a cut never makes a tree faster.
    extra = xp.where(is_cut(pes, ring.p, ring.span), 1.0, 0.0)
    return share, xp.ceil(ring.degree / share) + extra


def shared_links(network: Network, p: Cells, replicas: Cells, group: Cells) -> Cells:
    """Count flows per link of a node, at least 1: phi of rings with one PE of every group."""
    # One ring per PE of a group in the node. ABCI: 4 of them over 2 links, phi = 2.
    flows = xp.minimum(group, network.pes_per_node)
    # With one replica there are no rings, and inside a node they share no link.
    leaves_node = xp.greater(p, network.pes_per_node) & xp.greater(replicas, 1)
    return xp.where(leaves_node, xp.maximum(1.0, flows / network.links_per_node), 1.0)
