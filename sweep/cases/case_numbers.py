"""Read parameter values from a case of one cell, in SI units."""

import numpy as np

from grids.entries.parameters import GIVEN, PARAMETERS
from kernels.compiled import compiled
from kernels.configuration.answers import AnyCase
from kernels.configuration.case import Case
from kernels.configuration.places import PLACES, read_parameter
from kernels.machine.network import Link, link, staged_link
from kernels.oracle.exchanges import find_links
from sweep.answers.numbers import finite, number

# Parameters on which no time depends.
TIMELESS = ("gamma", "memory_capacity", "reserved")
# Parameters of the machine oracle in an answer: all of a PE, and the main ones of the rest.
OF_PE = tuple(
    name for name, row in PARAMETERS.items() if row.prior is not None and PLACES[name].part == "pe"
)
OTHERS = ("layer_overhead", "input_rate", "bucket", "overlap", "jitter", "log_open")
UPGRADABLE = tuple(name for name in PLACES if name in GIVEN and name not in TIMELESS)


def read_value(case: AnyCase, name: str) -> float:
    """Value of a parameter in a case of one cell; the first of several network levels."""
    assert isinstance(case, Case)  # layouts keep none of the machine
    return float(np.ravel(read_parameter(case, name))[0])


def parameters(case: Case) -> dict[str, float | None]:
    """Parameter values that the formulas were evaluated with, in SI units."""
    run, network, pe = case.run, case.network, case.pe
    in_group, across, staged = _find_links(case)
    values: dict[str, float | None] = {
        "group_latency": number(in_group.alpha),
        "group_bandwidth": _read_bandwidth(in_group),
        "replica_latency": number(across.alpha),
        "replica_bandwidth": _read_bandwidth(across),
        "halo_latency": number(staged.alpha),
        "halo_bandwidth": _read_bandwidth(staged),
        "phi": number(run.phi),
        "phi_halo": number(network.phi_halo),
        "phi_gather": number(network.phi_gather),
        "peak_flops": number(pe.peak_flops),
        "efficiency": number(pe.efficiency),
        "memory_bandwidth": number(pe.memory_bandwidth),
        "memory_capacity": number(pe.memory_capacity),
        "delta": number(run.delta),
        "segments": number(run.segments),
        "accumulate": number(run.accumulate),
    }
    if case.options.oracle == "paper":
        return values | {"gamma": number(run.gamma)}
    values["gradient_delta"] = number(run.gradient_delta)
    return values | {name: finite(read_value(case, name)) for name in (*OF_PE, *OTHERS)}


@compiled(numpy=True)
def _find_links(case: Case) -> tuple[Link, Link, Link]:
    """Links inside a group, across replicas and between halo neighbours, in one program."""
    network, run = case.network, case.run
    if case.options.oracle == "paper":
        return link(network, run.group), link(network, run.p), staged_link(network, run.group)
    return find_links(case)


def _read_bandwidth(path: Link) -> float:
    """Bandwidth [B/s] to 14 digits, as users wrote it: inverting twice leaves rounding errors."""
    return float(f"{1 / number(path.beta):.14g}")
