"""The network: latency and bandwidth that a ring of PEs sees.

A machine is a list of levels (node, leaf switch, rack ...), each spanning a number of PEs. Symbols:
alpha, the start-up of a message [s]; beta [s/B]; phi >= 1, the contention of a flow, which
multiplies beta (ParaDL, sections 4.2 and 5.2.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax

from kernels.arrays import Cells, Flags, PerLevel, xp


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Link:
    """Start-up `alpha` [s] and `beta` [s/B] of a flow's path."""

    alpha: Cells
    beta: Cells

    def contended(self, phi: Cells) -> "Link":
        """Return the path if `phi` flows share its bandwidth."""
        # They share bandwidth only; none of them starts later.
        return Link(self.alpha, xp.multiply(self.beta, phi))


# Factors on latencies and bandwidths by level, for each line. Not stacked: an array with fewer
# dimensions than the cells is constant over them.
MeasuredLines = tuple[tuple[PerLevel, PerLevel], ...]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Network:
    """Levels in ascending `span` [PEs], each with `latency` [s] and `bandwidth` [B/s].

    staging_*: path through host memory that halo and split-point exchanges take if PEs of a node
    cannot access each other's memory (latency 0 and infinite bandwidth if they can). input_rate
    [samples/s]: per node. oversubscription [level]: bandwidth of its nodes' links over the
    bandwidth that leaves it. flow: largest share of a node's links that one flow can use. size:
    PEs of the machine. whole_gradients: gradients leave as one message, by rings. measured: lines
    by collective (`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`), of which the fastest
    counts; for layouts, of messages (`send`) as well. switch_latency [s]: start-up of a collective
    that the switches of a node sum and multicast; None: its PEs do. Table III uses none of the
    fields from input_rate on.
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
    return values * xp.expand_dims(factors, tuple(range(1, xp.ndim(values))))


def link(network: Network, q: Cells) -> Link:
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
    return Link(alpha, 1 / bandwidth)


def nodes(p: Cells, network: Network) -> Cells:
    """Count nodes, n = max(1, p / PEs of a node)."""
    # Not rounded up: a half-full node counts as half.
    return xp.maximum(p / network.pes_per_node, 1.0)


def staged_link(network: Network, q: Cells) -> Link:
    """Return the path of a halo or split-point exchange among `q` PEs.

    The slowest pair of neighbours determines the time, and even in a group across nodes some
    neighbours share a node: staging bounds the path from below everywhere.
    """
    direct = link(network, q)
    return Link(
        xp.maximum(direct.alpha, network.staging_latency),
        # Without staging this is 1/inf = 0 s/B, so the direct path is the maximum.
        xp.maximum(direct.beta, 1 / xp.asarray(network.staging_bandwidth)),
    )
