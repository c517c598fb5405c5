"""A machine in the form that kernels take: its PEs, and the network between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from paradl.grids.entries.calibration import CalibrationFile, LayoutTime
from paradl.grids.entries.connections import Collectives
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.entries.reserves import find_most_memory
from paradl.grids.entries.software import LayoutFacts
from paradl.grids.entries.systems import Level, System
from paradl.grids.entries.transformer_rates import find_efficiency, read_facts
from paradl.grids.inputs.values import NOTHING, Values
from paradl.kernels.configuration.places import ENDLESS, PLACES, Part
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import MeasuredLines, Network
from paradl.kernels.machine.rates import StackFacts
from paradl.kernels.machine.software import Software
from paradl.kernels.machine.speeds import Speeds
from paradl.kernels.names.arrays import Floats
from paradl.kernels.options import OracleName
from paradl.kernels.oracle.uncertainty import PARTS

# Networks are padded to this many levels; few machines have more.
LEVELS = 4


@dataclass(frozen=True)
class Machine:
    """A system with its calibration, if it has one.

    layouts: a fit to runs of layouts, which moves priors.
    """

    system: System
    calibration: CalibrationFile | None = None
    layouts: LayoutTime | None = None

    def look_up(self, name: str, values: Values) -> Floats:
        """Look up a parameter of the machine oracle: the user's value, else the calibration's, else
        the software's, else the prior's median.
        """
        return values.get(name, self.expected[name])

    @property
    def reserved(self) -> float:
        """Memory of a PE outside of tensors [B]."""
        return float(self.expected["reserved"])

    def move_priors(self, fitted: LayoutTime | None) -> "Machine":
        """Return the machine that times of layouts are by: a fit to their runs moves priors."""
        return Machine(self.system, layouts=fitted) if fitted else self

    @cached_property
    def expected(self) -> dict[str, float]:
        """Values that the user may replace; parameters without a prior are looked up elsewhere."""
        system, fitted = self.system, self.calibration.parameters if self.calibration else {}
        medians = {
            name: parameter.prior.median[system.precision]
            for name, parameter in PARAMETERS.items()
            if parameter.prior is not None
        }
        expected = medians | {
            "efficiency_blocks": find_efficiency(system),
            "layout_passes": system.conversions * medians["layout_passes"],
            **system.software_facts.parameters,
            **dict.fromkeys(system.measured_shares, 1.0),
            **{name: parameter.value for name, parameter in fitted.items()},
        }
        for name, factor in self.layouts.parameters.items() if self.layouts else ():
            moved = expected[name] * factor
            expected[name] = min(moved, 1.0) if name in PARTS else moved
        return expected

    def look_up_part(self, part: Part, values: Values) -> dict[str, Floats]:
        """Look up the parameters of one part of a case, by field."""
        return {
            place.field: self.look_up(name, values)
            for name, place in PLACES.items()
            if place.part == part and PARAMETERS[name].prior is not None
        }

    def find_room(self, values: Values, *, of_blocks: bool) -> Floats:
        """Find the memory by formulas up to which a configuration fits [B], with the probability
        that is required.
        """
        stated = values.get("memory_capacity", self.system.pe.memory_capacity)
        room, chance = stated * (1 - values.get("headroom")), values.get("fit_chance")
        if not chance.any():
            return room
        uncertain = self.system.find_reserve(of_blocks=of_blocks), self.look_up("reserved", values)
        return np.minimum(room, find_most_memory(stated, chance, *uncertain))


def build_pe(
    machine: Machine, values: Values, oracle: OracleName, *, of_blocks: bool = False
) -> PE:
    """Build the processing element from the user's values or the system's."""
    system, paper = machine.system, oracle == "paper"
    return PE(
        peak_flops=values.get("peak_flops", system.pe.peak_flops if paper else system.peak),
        # A system's own efficiency is for Table III; else every kind of layer has its own.
        efficiency=values.get("efficiency", system.pe.efficiency if paper else 1.0),
        memory_capacity=machine.find_room(values, of_blocks=of_blocks),
        memory_bandwidth=values.get("memory_bandwidth", system.pe.memory_bandwidth),
        **({} if paper else machine.look_up_part("pe", values)),
    )


def build_software(machine: Machine, values: Values, oracle: OracleName) -> Software:
    """Build the framework's overheads; Table III has none."""
    if oracle == "paper":
        return Software()
    return Software(**machine.look_up_part("software", values))


def sends_whole_gradients(system: System) -> bool:
    """True if gradients are sent as one message by a plain ring, at sizes for which libraries
    choose trees or hierarchies.

    On ABCI, rings are closer to the largest runs (docs/accuracy.md).
    """
    return system.software == "plain"


def look_up_bytes(
    of: Literal["item", "gradient"], system: System, values: Values, oracle: OracleName
) -> Floats:
    """Bytes per item of a tensor, or per weight of the gradients that replicas exchange."""
    if oracle == "paper":
        return values.get("delta")
    return np.full((1,) * values.rank, float(getattr(PRECISIONS[system.precision], of)))


def build_network(machine: Machine, values: Values, oracle: OracleName) -> Network:
    """Build the network's levels, the node first; at least LEVELS of them."""
    system, paper = machine.system, oracle == "paper"
    # The outermost level is repeated, so that all machines share one compiled program.
    levels = (*system.levels, *system.levels[-1:] * (LEVELS - len(system.levels)))
    # An axis of bandwidth or latency applies to all levels beyond the node together.
    places = [*zip(("intra", *["inter"] * (len(levels) - 1)), levels, strict=True)]
    latency = [values.get(f"{place}_latency", level.latency) for place, level in places]
    bandwidth = [values.get(f"{place}_bandwidth", level.bandwidth) for place, level in places]
    if not paper:  # nothing limits a flow beyond the last real level
        padding = len(levels) - len(system.levels)
        bandwidth[len(system.levels) :] = [np.full((1,) * values.rank, ENDLESS)] * padding
    # Factors [level], so that an axis of bandwidths moves measured collectives as well.
    collectives = () if paper else Collectives.model_fields
    lines = {name: _find_factors(system.levels, name, len(levels)) for name in collectives}
    staging, node = system.staging, system.levels[0]
    return Network(
        span=np.array([level.pes for level in levels], float),
        latency=np.stack(np.broadcast_arrays(*latency)),
        bandwidth=np.stack(np.broadcast_arrays(*bandwidth)),
        pes_per_node=np.asarray(float(system.pes_per_node)),
        links_per_node=np.asarray(float(system.links_per_node)),
        # Without staging the path has zero latency and infinite bandwidth: never the slower one.
        staging_latency=values.get("staging_latency", staging.latency if staging else 0.0),
        staging_bandwidth=values.get("staging_bandwidth", staging.bandwidth if staging else np.inf),
        # The system's contention factors are Table III's; the machine oracle counts flows instead.
        phi_halo=values.get("phi_halo", system.contention.halo if paper else 1.0),
        phi_gather=values.get("phi_gather", system.contention.split_gather if paper else 1.0),
        input_rate=values.get("input_rate", system.input_rate or np.inf),
        oversubscription=np.array([level.oversubscription for level in levels]),
        size=np.asarray(np.inf if paper else float(system.most_pes)),
        whole_gradients=np.asarray(not paper and sends_whole_gradients(system)),
        measured={name: found for name, found in lines.items() if found} or None,
        switch_latency=(
            None if paper or node.switch_latency is None else np.asarray(node.switch_latency)
        ),
        shared=np.asarray(np.inf if paper else node.shared or np.inf),
        **({} if paper else machine.look_up_part("network", values)),
    )


def _find_factors(levels: Sequence[Level], collective: str, depth: int) -> MeasuredLines:
    """Lines of factors [depth] on latencies and bandwidths of a collective; none if not measured.

    A level beyond the node of fewer lines has its last one again.
    """
    measured = [getattr(level.collectives, collective, None) for level in levels]
    if not any(measured):
        return ()
    # Lines of levels beyond the node meet by bandwidth, the fastest first; each meets all of the
    # node's, whose protocols are others.
    node, *beyond = [
        sorted(ways or (level,), key=lambda way: -way.bandwidth)
        for ways, level in zip(measured, levels, strict=True)
    ]
    longest = max(map(len, beyond), default=1)
    padded = [[*ways, *ways[-1:] * (longest - len(ways))] for ways in beyond]
    outside = [*zip(*padded, strict=True)] or [()]
    rows = [(inside, *others) for inside in node for others in outside]
    latency = np.array([level.latency for level in levels])
    bandwidth = np.array([level.bandwidth for level in levels])
    stated, more = np.where(latency > 0, latency, np.inf), depth - len(levels)
    return tuple(
        (
            # Where no latency is stated, none is scaled. Padded levels have the last one's.
            np.pad([way.latency for way in ways] / stated, (0, more), mode="edge"),
            np.append([way.bandwidth for way in ways] / bandwidth, np.ones(more)),
        )
        for ways in rows
    )


@dataclass(frozen=True)
class Stack:
    """A machine and its software, as they train blocks.

    precision: a recipe of bytes per parameter. calibrated: times fitted to runs of layouts.
    software: other than the system's.
    """

    machine: Machine
    precision: str
    calibrated: LayoutTime | None = None
    software: LayoutFacts | None = None

    @cached_property
    def facts(self) -> StackFacts:
        """Facts of the device and its software. InputError: a peak is not stated."""
        facts = read_facts(self.machine.system, self.precision, self.software)
        return replace(facts, slowdown=self.calibrated.factor if self.calibrated else 1.0)

    def find_speeds(self, values: Values = NOTHING) -> Speeds:
        """Find the speeds with these values of parameters."""
        return Speeds.from_parts(*self.build_parts(values), self.facts)

    def build_parts(self, values: Values) -> tuple[PE, Network, Software]:
        """Build the parts of a case."""
        pe = build_pe(self.machine, values, "machine", of_blocks=True)
        return (
            # A recipe has a peak of its own.
            replace(pe, peak_flops=values.get("peak_flops", self.facts.peaks.products)),
            build_network(self.machine, values, "machine"),
            build_software(self.machine, values, "machine"),
        )
