"""The network as software uses it: the latencies and bandwidths that messages reach.

Shares and factors are those of `kernels.machine.software`; docs/machine.md, Network.
"""

from dataclasses import dataclass, replace

from paradl.kernels.arrays import Cells, PerLevel, use_numpy, xp
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.software import Software


def reach_links(network: Network, software: Software) -> Network:
    """Return the network with the latencies and bandwidths that software achieves beyond a node."""
    # By span, since a machine of one node repeats its level (grids/inputs/machine.py).
    beyond = xp.greater(network.span, network.span[0])
    is_outer = xp.expand_dims(beyond, tuple(range(beyond.ndim, xp.ndim(network.latency))))

    def scale(stated: PerLevel, factor: Cells) -> PerLevel:
        return stated * xp.where(is_outer, factor, 1.0)

    return replace(
        network,
        latency=scale(network.latency, software.startup),
        bandwidth=scale(network.bandwidth, software.rail),
        # Both are shares of stated values; `flow` becomes a share of what `rail` leaves.
        flow=software.flow / software.rail,
    )


def reach_inside(network: Network, share: Cells) -> Network:
    """Return the network with a share of the bandwidth inside a node."""
    inside = network.bandwidth[0] * share
    others = xp.broadcast_to(network.bandwidth[1:], (len(network.span) - 1, *xp.shape(inside)))
    return replace(network, bandwidth=xp.concatenate([inside[None], others]))


def stage_through_hosts(network: Network, software: Software) -> Network:
    """Return the network with paths through host memory, for systems with `staging`."""
    startup = software.halo_startup * network.staging_latency
    # All paths begin inside a node, so its bound applies to all of them.
    # Divide by the staging bandwidth: inf, without staging, then stays differentiable.
    share = 1 / xp.maximum(network.bandwidth[0] / network.staging_bandwidth, 1.0)
    return reach_inside(replace(network, latency=xp.maximum(network.latency, startup)), share)


@dataclass(frozen=True)
class Fabric:
    """A machine's network as stated, and as software uses it.

    messages: between two PEs. layers, gradients: in collectives of layers, and of replicas.
    """

    stated: Network
    messages: Network
    layers: Network
    gradients: Network

    @classmethod
    def from_network(cls, network: Network, software: Software) -> "Fabric":
        """Return the network as software uses it, in numpy."""
        with use_numpy():
            messages = reach_links(network, software)
            return cls(
                stated=network,
                messages=messages,
                layers=reach_inside(messages, software.node_collective),
                gradients=reach_inside(messages, software.node_reduce),
            )
