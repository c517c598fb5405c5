"""A machine in the form that layouts take: rates of a PE, links, bytes per item."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.software import Loss
from paradl.grids.entries.systems import Level, System
from paradl.grids.entries.transformer_rates import FITTED, make_rates, read_rates
from paradl.grids.inputs.machine import build_lines, find_reached
from paradl.kernels.layouts.rates import Rates
from paradl.kernels.layouts.transformer import Training
from paradl.kernels.machine.network import MeasuredLines, Network
from paradl.kernels.names.arrays import Floats

# Of one machine, or of several [machines].
Values = Mapping[str, float] | Mapping[str, Floats]
NOTHING: Mapping[str, float] = MappingProxyType({})
LOSS_PARTS = 8  # of a chunked loss, as torchtune has it
# Bytes per logit of PyTorch's log_softmax: the output, which it keeps, and its gradient. The item
# of the recipe and, if that has fewer than 4 bytes, its copy in fp32 come on top.
PLAIN_LOSS = 4 + 4


def read_machines(
    system: System, precision: str, given: Values = NOTHING, factors: Values = NOTHING
) -> Rates:
    """Return the rates of PEs at a recipe's peak, columns [machines] where these differ.

    given: parameters that replace the system's; factors: on parameters, whatever replaces them.
    """
    usual = read_rates(system, precision)
    own = {"peak_flops": usual.peak, "memory_bandwidth": usual.bandwidth}
    if own.keys().isdisjoint([*given, *factors]):
        return usual
    values = (given.get(name, value) * factors.get(name, 1.0) for name, value in own.items())
    # A peak that is moved moves those of attention, logits and plain cores in proportion.
    facts, rates = system.software_facts.layouts, []
    for peak, bandwidth in zip(*map(np.ravel, np.broadcast_arrays(*values)), strict=True):
        wide, vector = (
            rate * float(peak) / usual.peak for rate in (usual.wide_peak, usual.vector_peak)
        )
        speeds = float(peak), wide, vector, float(bandwidth)
        rates.append(vars(make_rates(speeds, FITTED, facts, system.pe.device, usual.wide_peak)))
    columns = {name: np.array([each[name] for each in rates]) for name in rates[0]}
    several = {name: column for name, column in columns.items() if np.any(column != column[0])}
    return Rates(**{**rates[0], **several})


def read_network(system: System, given: Values = NOTHING, factors: Values = NOTHING) -> Network:
    """Build the levels of a machine, and the links of its nodes.

    given, factors: as in `read_machines`; of several machines levels are [level, machines].
    """
    # All levels beyond a node move together.
    places = ["intra", *["inter"] * (len(system.levels) - 1)]

    def read(field: str) -> Floats:
        named = [
            (f"{place}_{field}", getattr(level, field))
            for place, level in zip(places, system.levels, strict=True)
        ]
        values = (given.get(name, own) * factors.get(name, 1.0) for name, own in named)
        return np.stack(np.broadcast_arrays(*values))

    return Network(
        measured=_build_measured(system.levels),
        switch_latency=system.levels[0].switch_latency,
        span=np.array([level.pes for level in system.levels], float),
        latency=read("latency"),
        bandwidth=read("bandwidth"),
        pes_per_node=float(system.pes_per_node),
        links_per_node=float(system.links_per_node),
        # Layouts exchange no halos, and stage nothing through hosts.
        staging_latency=0.0,
        staging_bandwidth=np.inf,
        phi_halo=1.0,
        phi_gather=1.0,
        oversubscription=np.array([level.oversubscription for level in system.levels]),
        size=float(system.most_pes),
    )


def _build_measured(levels: Sequence[Level]) -> dict[str, MeasuredLines] | None:
    """Lines of factors by measured collective, and of messages (`send`); None: none is.

    Kernels divide by `rail`, the share that unmeasured bandwidths reach: measured ones are not
    reduced by it.
    """
    lines = build_lines(levels, len(levels), FITTED["rail"])
    if lines is None:
        return None
    return {**lines, "send": ((np.ones(len(levels)), 1 / find_reached(levels, FITTED["rail"])),)}


def find_reserved(system: System) -> float:
    """Return memory of a PE that holds no tensor [B], as in the machine oracle."""
    prior = PARAMETERS["reserved"].prior
    assert prior
    return prior.median[system.precision]


def keep_logits(training: Training, loss: Loss) -> Training:
    """Return the training with what a loss keeps of logits."""
    item = training.recipe.item
    plain = item + 4 * (item < 4) + PLAIN_LOSS
    return replace(
        training,
        logit_bytes={"fused": 0, "plain": plain}.get(loss, 4),
        loss_parts=LOSS_PARTS if loss == "chunked" else 1,
    )
