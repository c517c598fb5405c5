"""A machine as the kernels take it: its PEs, and the network between them."""

import numpy as np

from grids.entries.systems import System
from grids.inputs.values import Values
from kernels.compute import PE
from kernels.network import Network

# Levels that a network has at least: few machines have more.
LEVELS = 4


def build_pe(system: System, values: Values) -> PE:
    """A processing element, as the system states it where no axis or setting does."""
    return PE(
        peak_flops=values.get("peak_flops", system.pe.peak_flops),
        efficiency=values.get("efficiency", system.pe.efficiency),
        memory_capacity=values.get("memory_capacity", system.pe.memory_capacity),
        memory_bandwidth=values.get("memory_bandwidth", system.pe.memory_bandwidth),
    )


def build_network(system: System, values: Values) -> Network:
    """The network's levels, of which the first is the node."""
    # The outermost one stands there several times: so machines share one compiled program.
    levels = (*system.levels, *system.levels[-1:] * (LEVELS - len(system.levels)))
    # An axis of bandwidth or latency replaces all levels beyond the node together.
    places = ["intra" if n == 0 else "inter" for n in range(len(levels))]
    latency = [
        values.get(f"{place}_latency", level.latency)
        for place, level in zip(places, levels, strict=True)
    ]
    bandwidth = [
        values.get(f"{place}_bandwidth", level.bandwidth)
        for place, level in zip(places, levels, strict=True)
    ]
    staging = system.staging
    return Network(
        span=np.array([level.pes for level in levels], float),
        latency=np.stack(np.broadcast_arrays(*latency)),
        bandwidth=np.stack(np.broadcast_arrays(*bandwidth)),
        pes_per_node=np.asarray(float(system.pes_per_node)),
        links_per_node=np.asarray(float(system.links_per_node)),
        # A path of no latency and no end of bandwidth is never the slower one.
        staging_latency=values.get("staging_latency", staging.latency if staging else 0.0),
        staging_bandwidth=values.get("staging_bandwidth", staging.bandwidth if staging else np.inf),
        phi_halo=values.get("phi_halo", system.contention.halo),
        phi_gather=values.get("phi_gather", system.contention.split_gather),
    )
