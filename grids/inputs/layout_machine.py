"""A machine in the form that layouts take: rates of a PE, links, bytes per item."""

from collections.abc import Mapping, Sequence

import numpy as np

from grids.entries.parameters import PARAMETERS
from grids.entries.precision import RECIPES
from grids.entries.software import SOFTWARE
from grids.entries.systems import Level, System
from grids.entries.transformer_rates import FITTED, find_recipe, make_rates, read_rates
from grids.inputs.machine import build_lines, find_reached
from kernels.layouts.rates import Rates
from kernels.layouts.transformer import Training, Transformer
from kernels.machine.network import MeasuredLines, Network
from kernels.names.arrays import Floats


def read_machine(system: System, precision: str, given: Mapping[str, float]) -> Rates:
    """Return the rates of a PE at a recipe's peak; given: parameters that replace the system's."""
    rates = read_rates(system, precision)
    if not {"peak_flops", "memory_bandwidth"} & {*given}:
        return rates
    peak = given.get("peak_flops", rates.peak)
    wide, vector = (value * peak / rates.peak for value in (rates.wide_peak, rates.vector_peak))
    speeds = peak, wide, vector, given.get("memory_bandwidth", rates.bandwidth)
    facts = SOFTWARE[system.software].layouts
    return make_rates(speeds, FITTED, facts, system.pe.device)


def read_machines(system: System, precision: str, given: Mapping[str, Floats]) -> Rates:
    """Return the rates of several machines; given: as in `read_machine` [machines] each."""
    names = [name for name in ("peak_flops", "memory_bandwidth") if name in given]
    if not names:
        return read_machine(system, precision, {})
    values = zip(*(given[name].tolist() for name in names), strict=True)
    rates = [
        vars(read_machine(system, precision, dict(zip(names, row, strict=True)))) for row in values
    ]
    columns = {name: np.array([each[name] for each in rates]) for name in rates[0]}
    several = {name: column for name, column in columns.items() if np.any(column != column[0])}
    return Rates(**{**rates[0], **several})


def read_network(system: System, given: Mapping[str, float | Floats] | None = None) -> Network:
    """Build the levels of a machine, and the links of its nodes.

    given: as in `read_machine`; of several machines [machines] each, and so are levels then.
    """
    known = given or {}
    places = ["intra", *["inter"] * (len(system.levels) - 1)]
    levels = [*zip(places, system.levels, strict=True)]
    return Network(
        measured=_build_measured(system.levels),
        switch_latency=system.levels[0].switch_latency,
        span=np.array([level.pes for level in system.levels], float),
        latency=_stack([known.get(f"{at}_latency", level.latency) for at, level in levels]),
        bandwidth=_stack([known.get(f"{at}_bandwidth", level.bandwidth) for at, level in levels]),
        pes_per_node=float(system.pes_per_node),
        links_per_node=float(system.links_per_node),
        staging_latency=0.0,
        staging_bandwidth=np.inf,
        phi_halo=1.0,
        phi_gather=1.0,
        oversubscription=np.array([level.oversubscription for level in system.levels]),
    )


def _stack(levels: Sequence[float | Floats]) -> Floats:
    return np.stack(np.broadcast_arrays(*levels))


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


def make_training(
    system: System, net: Transformer, length: int, schedule: str, reserved: float | None
) -> Training:
    """Describe how a strategy's layouts train; their global batch is a column of theirs."""
    return Training(
        batch=0,
        length=net.length or length,
        recipe=RECIPES[find_recipe(system)],
        schedule=schedule,
        reserved=find_reserved(system) if reserved is None else reserved,
    )
