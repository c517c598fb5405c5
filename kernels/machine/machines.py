"""The machines among the cells of a case: rates of a PE, and networks."""

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np

from paradl.kernels.arrays import Cells
from paradl.kernels.columns import Column
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.rates import Rates, StackFacts, find_rates
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.machine.software import Software


class Machines(NamedTuple):
    """The machines among the cells of a case.

    rates, fabric: columns [machines], numbers for a single one. place: index of each cell's
    machine, of size 1 along dimensions where it does not vary.
    """

    rates: Rates
    fabric: Fabric
    place: Column
    number: int

    @classmethod
    def from_parts(
        cls, pe: PE, network: Network, software: Software, facts: StackFacts, rank: int
    ) -> "Machines":
        """Find the machines among cells of `rank` dimensions."""
        rates = {name: np.asarray(v) for name, v in vars(find_rates(pe, software, facts)).items()}
        fabric = Fabric.from_network(_trim_levels(network), software)
        parts = vars(fabric).values()
        links = (part for net in parts for part in (net.latency, net.bandwidth, net.flow))
        varied = [*rates.values(), *links]
        # Constants have fewer dimensions than the cells.
        shapes = (np.shape(values)[-rank:] for values in varied if np.ndim(values) >= rank)
        shape = np.broadcast_shapes((1,) * rank, *shapes)

        def list_values(values: Cells) -> Column:
            """Return values [..., cells] as [..., machines], or [...] of a single machine."""
            whole = np.asarray(values)
            if whole.ndim < rank:
                return whole
            leading = whole.shape[: whole.ndim - rank]
            if whole.size == prod(leading):
                return whole.reshape(leading)
            return np.broadcast_to(whole, (*leading, *shape)).reshape(*leading, -1)

        def list_links(part: Network) -> Network:
            latency, bandwidth, flow = map(list_values, (part.latency, part.bandwidth, part.flow))
            return replace(part, latency=latency, bandwidth=bandwidth, flow=flow)

        columns = {name: list_values(column) for name, column in rates.items()}
        single = {name: column.item() for name, column in columns.items() if column.ndim == 0}
        return cls(
            rates=Rates(**columns | single),
            fabric=Fabric(**{name: list_links(part) for name, part in vars(fabric).items()}),
            place=np.arange(prod(shape)).reshape(shape),
            number=prod(shape),
        )


def _trim_levels(network: Network) -> Network:
    """Return the network without the levels that pad it, whose spans repeat the last one's.

    Constants [level] lose the dimensions of cells, if they have any.
    """
    levels = np.unique(network.span).size

    def trim(values: Any) -> Column:
        return np.reshape(values, len(values))[:levels]

    return replace(
        network,
        span=trim(network.span),
        latency=network.latency[:levels],
        bandwidth=network.bandwidth[:levels],
        oversubscription=jax.tree.map(trim, network.oversubscription),
        measured=jax.tree.map(trim, network.measured),
    )
