"""The network: which latency and bandwidth a ring of PEs sees.

A machine is a list of levels (node, leaf switch, rack ...), each with the number of PEs that it
spans. Symbols: alpha start-up of a message [s], beta seconds a byte, phi >= 1 contention of a flow,
which multiplies beta (ParaDL, section 4.2 and 5.2.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax

from kernels.arrays import Cells, Flags, PerLevel
from kernels.compiled import compiled
from kernels.namespace import xp


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Link:
    """Start-up `alpha` [s] and `beta` [s/B] of the path that a flow takes."""

    alpha: Cells
    beta: Cells

    def contended(self, phi: Cells) -> "Link":
        """The same path where `phi` flows share its bandwidth."""
        # Flows that share a link share its bandwidth; none waits longer to start.
        return Link(self.alpha, xp.multiply(self.beta, phi))


# Factors on latencies and bandwidths by level, for each line. Not stacked: what has fewer
# dimensions than cells is a constant of them.
MeasuredLines = tuple[tuple[PerLevel, PerLevel], ...]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Network:
    """Levels in ascending `span` [PEs], each with `latency` [s] and `bandwidth` [B/s].

    `staging_*` is the path through host memory that halo and split-point exchanges take where the
    PEs of a node do not see each other's memory (latency 0 and infinite bandwidth where they do).
    `input_rate` [samples/s] is what the hosts of a node feed. `oversubscription`, of a level: its
    nodes' links over what leaves it. `flow`: the most that one flow has of a node's links. `size`
    [PEs]: how many there are. `whole_gradients`: whether gradients leave as one message, by rings.
    `measured`: lines of `all_reduce` and `all_gather`, of which the fastest counts. Table III knows
    none of these.
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

    def list_lines(self, collective: str) -> tuple["Network", ...]:
        """The network as each measured line of a collective has it, none where none is measured."""
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
    """The values [level, ...] times a factor for each level."""
    return values * xp.expand_dims(factors, tuple(range(1, xp.ndim(values))))


def link(network: Network, q: Cells) -> Link:
    """The path of a ring of `q` PEs: the smallest level that spans them, else the last one."""
    spans = xp.asarray(network.span)
    alphas, bandwidths = xp.asarray(network.latency), xp.asarray(network.bandwidth)
    alpha, bandwidth = alphas[-1], bandwidths[-1]
    # From the outermost inwards: the smallest that spans q is chosen last. Levels are few, and a
    # chain of selects is elementwise, which a search is not.
    for level in reversed(range(spans.shape[0] - 1)):
        inside = xp.less_equal(q, spans[level])
        alpha = xp.where(inside, alphas[level], alpha)
        bandwidth = xp.where(inside, bandwidths[level], bandwidth)
    return Link(alpha, 1 / bandwidth)


def nodes(p: Cells, network: Network) -> Cells:
    """n = max(1, p / PEs of a node)."""
    # Not rounded up: a node that is half full counts half.
    return xp.maximum(p / network.pes_per_node, 1.0)


def staged_link(network: Network, q: Cells) -> Link:
    """The path of a halo or split-point exchange among `q` PEs.

    The exchange ends when its slowest pair of neighbours has ended, and some neighbours share a
    node also where the group spans several: staging bounds the path from below everywhere.
    """
    direct = link(network, q)
    return Link(
        xp.maximum(direct.alpha, network.staging_latency),
        # 1/inf = 0 s a byte where there is no staging: the direct path is then the maximum.
        xp.maximum(direct.beta, 1 / xp.asarray(network.staging_bandwidth)),
    )


@compiled(numpy=True)
def shared_links(network: Network, p: Cells, replicas: Cells, group: Cells) -> Cells:
    """phi of rings that each take one PE of every group: flows a link of a node, 1 at least."""
    # A ring for each PE of a group in the node. ABCI: 4 of them over 2 links, phi = 2.
    flows = xp.minimum(group, network.pes_per_node)
    # With one replica there are no rings, and inside a node no link that they share.
    leaves_node = xp.greater(p, network.pes_per_node) & xp.greater(replicas, 1)
    return xp.where(leaves_node, xp.maximum(1.0, flows / network.links_per_node), 1.0)
