"""Numbers of a case of one cell: its parameters' values, as formulas have them."""

import numpy as np

from grids.entries.parameters import GIVEN
from kernels.compiled import compiled
from kernels.configuration.case import Case
from kernels.configuration.places import PLACES, read_parameter
from kernels.machine.network import Link, link, staged_link
from kernels.oracle.exchanges import find_links
from sweep.answers.numbers import finite, number

# No time depends on these parameters.
TIMELESS = ("gamma", "memory_capacity", "reserved")
UPGRADABLE = tuple(name for name in PLACES if name in GIVEN and name not in TIMELESS)


def read_value(case: Case, name: str) -> float:
    """The value of a parameter in a case of one cell, of several levels the first."""
    return float(np.ravel(read_parameter(case, name))[0])


def parameters(case: Case) -> dict[str, float | None]:
    """The numbers that the formulas were evaluated with, in SI units."""
    run, network, pe = case.run, case.network, case.pe
    in_group, across, staged = _find_links(case)
    return {
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
        **(
            {"gamma": number(run.gamma)}
            if case.options.oracle == "paper"
            else _list_machine_parameters(case)
        ),
    }


def _list_machine_parameters(case: Case) -> dict[str, float | None]:
    """Those that Table III does not have."""
    pe = case.pe
    return {
        "gradient_delta": number(case.run.gradient_delta),
        "efficiency_conv2d": number(pe.convolution_2d),
        "efficiency_conv3d": number(pe.convolution_3d),
        "efficiency_matmul": number(pe.matrix_product),
        "half_channels": number(pe.half_channels),
        "tile_filters": number(pe.tile_filters),
        "kernel_overlap": number(pe.kernel_overlap),
        "window_fetch": number(pe.window_fetch),
        "layout_passes": number(pe.layout_passes),
        "winograd": number(pe.winograd),
        "elementwise_passes": number(pe.elementwise_passes),
        "layer_overhead": number(case.software.layer_overhead),
        "reserved": number(pe.reserved),
        "input_rate": finite(number(case.network.input_rate)),
        "bucket": finite(number(case.software.bucket)),
        "overlap": number(case.software.overlap),
        "jitter": number(case.software.jitter),
        "log_open": number(case.software.log_open),
    }


@compiled(numpy=True)
def _find_links(case: Case) -> tuple[Link, Link, Link]:
    """In a group, across all PEs, and of a halo: one program loads faster than each operation."""
    network, run = case.network, case.run
    if case.options.oracle == "paper":
        return link(network, run.group), link(network, run.p), staged_link(network, run.group)
    return find_links(case)


def _read_bandwidth(path: Link) -> float:
    """[B/s], as the user wrote it: two divisions would have left their rounding."""
    return float(f"{1 / number(path.beta):.14g}")
