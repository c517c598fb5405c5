"""Seconds of collectives and messages on rings of a layout's PEs, by the machine oracle's costs.

From the inside out a node has tensor, context, data and pipeline: the stride of a ring is the
product of the degrees inside it. q PEs at stride s; m bytes, of a gather the gathered size.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.layouts.columns import Column, find_distinct
from kernels.machine.library_collectives import (
    Cost,
    Costs,
    gather_costs,
    reduce_costs,
    time_all_to_all,
    time_fastest,
)
from kernels.machine.network import Network
from kernels.machine.rings import Ring, find_path


@dataclass(frozen=True)
class Transfers:
    """Times of transfers [layouts]. pes: of each run; rail: share of a link that is reached."""

    network: Network
    pes: Column
    rail: float

    def gather(self, degree: Column, stride: Column | int, m: Column) -> Column:
        """Compute seconds of an all-gather."""
        return self.time(self.cost_gather(degree, stride), m)

    def scatter(self, degree: Column, stride: Column | int, m: Column) -> Column:
        """Compute seconds of a reduce-scatter."""
        return self.time(self.cost_scatter(degree, stride), m)

    def reduce(self, degree: Column, stride: Column | int, m: Column) -> Column:
        """Compute seconds of an all-reduce."""
        return self.time(self.cost_reduce(degree, stride), m)

    def send(self, degree: Column, stride: Column, m: Column) -> Column:
        """Compute seconds of a message to the next PE of a ring."""
        network = self._find_network()
        (path,) = self._cost(lambda ring: (_cost_path(network, ring),), degree, stride)
        return np.asarray(path.startup + m * path.beta / self.rail)

    def send_to_all(
        self, degree: Column, stride: Column, m: Column, messages: int, alike: float = 1.0
    ) -> Column:
        """Compute seconds of all-to-alls of m bytes per PE: in nodes, then over all their links."""
        network = self._find_network("all_to_all")
        ring = Ring(*(np.asarray(number, float) for number in (degree, stride, self.pes)))
        return np.asarray(time_all_to_all(network, ring, m, messages, self.rail, alike))

    def cost_gather(self, degree: Column, stride: Column | int) -> Costs:
        """List the costs of an all-gather by each algorithm."""
        network = self._find_network("all_gather", "reduce_scatter")
        return self._cost(lambda ring: gather_costs(network, ring, "auto"), degree, stride)

    def cost_scatter(self, degree: Column, stride: Column | int) -> Costs:
        """List the costs of a reduce-scatter: a gather's, unless it was measured by itself."""
        if "reduce_scatter" not in (self.network.measured or {}):
            return self.cost_gather(degree, stride)
        return self._cost(
            lambda ring: gather_costs(self.network, ring, "auto", "reduce_scatter"), degree, stride
        )

    def cost_reduce(self, degree: Column, stride: Column | int) -> Costs:
        """List the costs of an all-reduce by each algorithm."""
        network = self._find_network("all_reduce")
        return self._cost(lambda ring: reduce_costs(network, ring, "auto"), degree, stride)

    def time(self, costs: Costs, m: Column) -> Column:
        """Compute seconds of one collective by its fastest algorithm."""
        return np.asarray(time_fastest(costs, m / self.rail, 1.0))

    def _find_network(self, *collectives: str) -> Network:
        """Return the network; where none of these collectives was measured, but others were, with
        the lines of its messages."""
        measured = self.network.measured
        if not measured or any(name in measured for name in collectives):
            return self.network
        return self.network.list_lines("send")[0]

    def _cost(self, find: Callable[[Ring], Costs], degree: Column, stride: Column | int) -> Costs:
        # Once for all rings that are alike, which nearly all of a product's layouts are.
        degrees, strides = np.asarray(degree, int), np.asarray(stride, int)
        sizes, place = find_distinct(degrees, strides, self.pes)
        ring = Ring(*(size.astype(float) for size in sizes))
        costs = ((cost.startup, cost.beta) for cost in find(ring))
        return tuple(
            Cost(*(np.broadcast_to(part, sizes[0].shape)[place] for part in cost)) for cost in costs
        )


def _cost_path(network: Network, ring: Ring) -> Cost:
    path = find_path(network, ring)
    return Cost(path.alpha, path.beta)
