"""Speeds at which blocks train on a machine: rates of a PE, and the network as software uses it."""

from dataclasses import fields, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from paradl.kernels.columns import Column
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.rates import Rates, StackFacts, find_rates
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.machine.software import Software

PER_LEVEL = ("span", "latency", "bandwidth", "oversubscription", "measured")


class Speeds(NamedTuple):
    """Rates of a PE, and the network between PEs."""

    rates: Rates
    fabric: Fabric

    @classmethod
    def from_parts(
        cls, pe: PE, network: Network, software: Software, facts: StackFacts
    ) -> "Speeds":
        """Return the speeds of one machine as numbers, or of rows of machines as columns [rows]."""
        network = take_levels(network, np.unique(network.span).size)
        rates = vars(find_rates(pe, software, facts))
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
