"""A machine as the kernels take it: its PEs, and the network between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from grids.entries.calibration import CalibrationFile
from grids.entries.connections import Collectives
from grids.entries.oracles import OracleName
from grids.entries.parameters import PARAMETERS
from grids.entries.precision import PRECISIONS
from grids.entries.software import SOFTWARE
from grids.entries.systems import Level, System
from grids.inputs.values import Values
from grids.models.layers import Floats
from kernels.configuration.places import PLACES, Part
from kernels.machine.network import MeasuredLines, Network
from kernels.machine.software import Software
from kernels.work.compute import PE

# Levels that a network has at least: few machines have more.
LEVELS = 4
# [B/s] of levels that a machine does not have. A number: of infinity times a parameter there is no
# derivative, and calibration needs one.
ENDLESS = 1e30


@dataclass(frozen=True)
class Machine:
    """A system with what its own runs tell of it, if any did."""

    system: System
    calibration: CalibrationFile | None = None

    def look_up(self, name: str, values: Values) -> Floats:
        """A parameter of the machine oracle: as the user states it, as runs of the machine tell,
        as its software has it, or as the prior's median.
        """
        prior = PARAMETERS[name].prior
        assert prior is not None, name  # a row of the table has one, or is asked for elsewhere
        expected = SOFTWARE[self.system.software].parameters.get(
            name, prior.median[self.system.precision]
        )
        if name in self.system.measured_shares:
            expected = 1.0
        if self.calibration is not None and name in self.calibration.parameters:
            expected = self.calibration.parameters[name].value
        return values.get(name, expected)

    def look_up_part(self, part: Part, values: Values) -> dict[str, Floats]:
        """The parameters of the machine oracle that a part of a case holds, by field."""
        return {
            place.field: self.look_up(name, values)
            for name, place in PLACES.items()
            if place.part == part and PARAMETERS[name].prior is not None
        }


def build_pe(machine: Machine, values: Values, oracle: OracleName) -> PE:
    """A processing element, as the system states it where no axis or setting does."""
    system = machine.system
    memory_capacity = values.get("memory_capacity", system.pe.memory_capacity)
    memory_bandwidth = values.get("memory_bandwidth", system.pe.memory_bandwidth)
    if oracle == "paper":
        return PE(
            peak_flops=values.get("peak_flops", system.pe.peak_flops),
            efficiency=values.get("efficiency", system.pe.efficiency),
            memory_capacity=memory_capacity,
            memory_bandwidth=memory_bandwidth,
        )

    return PE(
        peak_flops=values.get("peak_flops", system.peak),
        # The system's own is the paper's, of all kinds of layers: here each kind has its.
        efficiency=values.get("efficiency", 1.0),
        memory_capacity=memory_capacity,
        memory_bandwidth=memory_bandwidth,
        **machine.look_up_part("pe", values),
    )


def build_software(machine: Machine, values: Values, oracle: OracleName) -> Software:
    """A framework's costs beside the machine's time; none by Table III."""
    if oracle == "paper":
        return Software()
    return Software(**machine.look_up_part("software", values))


def sends_whole_gradients(system: System) -> bool:
    """True if gradients leave as one message, beyond what libraries send by trees or in levels.

    On ABCI rings are nearer to runs of the largest scales (docs/accuracy.md).
    """
    return system.software == "plain"


def look_up_bytes(
    of: Literal["item", "gradient"], system: System, values: Values, oracle: OracleName
) -> Floats:
    """Bytes of an item of a tensor, or of a weight's gradient where replicas exchange it."""
    if oracle == "paper":
        return values.get("delta")
    return np.full((1,) * values.rank, float(getattr(PRECISIONS[system.precision], of)))


def build_network(machine: Machine, values: Values, oracle: OracleName) -> Network:
    """The network's levels, of which the first is the node."""
    system, paper = machine.system, oracle == "paper"
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
    if not paper:  # nothing more is in the way of a flow that has reached the last one
        bandwidth[len(system.levels) :] = [np.full((1,) * values.rank, ENDLESS)] * (
            len(levels) - len(system.levels)
        )
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
        # The system's own divisors, made by hand, are Table III's: rails count flows.
        phi_halo=values.get("phi_halo", system.contention.halo if paper else 1.0),
        phi_gather=values.get("phi_gather", system.contention.split_gather if paper else 1.0),
        input_rate=values.get("input_rate", system.input_rate or np.inf),
        oversubscription=np.array([level.oversubscription for level in levels]),
        size=np.asarray(np.inf if paper else float(system.most_pes)),
        whole_gradients=np.asarray(not paper and sends_whole_gradients(system)),
        measured=None if paper else build_lines(levels),
        **({} if paper else machine.look_up_part("network", values)),
    )


def build_lines(levels: Sequence[Level]) -> dict[str, MeasuredLines] | None:
    """Lines of factors on latencies and bandwidths [level], by measured collective; None: none is.

    Factors, so that an axis of bandwidths moves measured collectives as well.
    """
    lines = {name: _find_factors(levels, name) for name in Collectives.model_fields}
    return {name: factors for name, factors in lines.items() if factors} or None


def _find_factors(levels: Sequence[Level], collective: str) -> MeasuredLines:
    """The same of one collective; a level of fewer lines has its first one again."""
    measured = [getattr(level.collectives, collective, None) for level in levels]
    if not any(measured):
        return ()
    # The fastest first: the order in which a level's lines meet those of another.
    lines = [
        sorted(ways or (level,), key=lambda way: -way.bandwidth)
        for ways, level in zip(measured, levels, strict=True)
    ]
    longest = max(map(len, lines))
    padded = [[*ways, *ways[:1] * (longest - len(ways))] for ways in lines]
    latency = np.array([level.latency for level in levels])
    bandwidth = np.array([level.bandwidth for level in levels])
    return tuple(
        (
            # Where no latency is stated, none is scaled.
            np.array([way.latency for way in ways]) / np.where(latency > 0, latency, np.inf),
            np.array([way.bandwidth for way in ways]) / bandwidth,
        )
        for ways in zip(*padded, strict=True)
    )
