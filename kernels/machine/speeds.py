"""Speeds that software reaches on a machine: latencies and bandwidths of messages, rates of PEs.

Shares and factors are those of `kernels.machine.software`; docs/machine.md, Network.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from paradl.kernels.arrays import Cells, PerLevel, use_numpy, xp
from paradl.kernels.columns import Column
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.rates import Rates, StackFacts, find_rates
from paradl.kernels.machine.software import Software

PER_LEVEL = ("span", "latency", "bandwidth", "oversubscription", "measured")


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
        """Return the network as software uses it."""
        messages = reach_links(network, software)
        return cls(
            stated=network,
            messages=messages,
            layers=reach_inside(messages, software.node_collective),
            gradients=reach_inside(messages, software.node_reduce),
        )


class Speeds(NamedTuple):
    """Rates of a PE, and the network between PEs, for blocks."""

    rates: Rates
    fabric: Fabric

    @classmethod
    def from_parts(
        cls, pe: PE, network: Network, software: Software, facts: StackFacts
    ) -> "Speeds":
        """Return the speeds of one machine as numbers, or of rows of machines as columns [rows]."""
        network = take_levels(network, np.unique(network.span).size)
        rates = vars(find_rates(pe, software, facts))
        with use_numpy():
            reached = vars(Fabric.from_network(network, software))
        fabric = {name: _flatten_network(part) for name, part in reached.items()}
        return cls(
            Rates(**{name: _flatten(rate) for name, rate in rates.items()}), Fabric(**fabric)
        )


def take_levels(network: Network, levels: int) -> Network:
    """Return the network without the levels that pad it, whose spans repeat the last one's."""
    parts = {name: getattr(network, name) for name in PER_LEVEL}
    return replace(network, **jax.tree.map(lambda values: values[:levels], parts))


def _flatten(values: Any) -> Any:
    """Return values as a column, or a single one as a number."""
    flat = np.ravel(values)
    return flat if flat.size > 1 else flat.item()


def _flatten_network(network: Network) -> Network:
    parts = {
        part.name: jax.tree.map(
            _flatten_levels if part.name in PER_LEVEL else _flatten, getattr(network, part.name)
        )
        for part in fields(network)
    }
    return Network(**parts)


def _flatten_levels(values: Any) -> Column:
    """Return values [level, ...] as [level, rows], or [level] of a single machine."""
    flat = np.reshape(values, (len(values), -1))
    return flat if flat.shape[1] > 1 else flat[:, 0]
