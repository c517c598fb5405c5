"""Continuous parameters: where in a case each stands, so that it can be scaled there.

A parameter is multiplied by a factor in place, and not looked up anew: so derivatives can be taken
in it, and of levels beyond the node all move together, each from its own value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels.arrays import Cells
from kernels.case import Case
from kernels.division import Division
from kernels.oracle import Answer, evaluate, reduce_layers
from kernels.software import Software

# Levels of a network, the node first.
NODE, BEYOND = slice(0, 1), slice(1, None)


@dataclass(frozen=True)
class Spot:
    """A field of a part of a case, of levels some."""

    part: str
    field: str
    levels: slice | None = None


# By the names that specs have for them. Reserved memory, and capacity, are of no time.
SPOTS: dict[str, Spot] = {
    "intra_bandwidth": Spot("network", "bandwidth", NODE),
    "inter_bandwidth": Spot("network", "bandwidth", BEYOND),
    "intra_latency": Spot("network", "latency", NODE),
    "inter_latency": Spot("network", "latency", BEYOND),
    "staging_bandwidth": Spot("network", "staging_bandwidth"),
    "staging_latency": Spot("network", "staging_latency"),
    "phi_halo": Spot("network", "phi_halo"),
    "phi_gather": Spot("network", "phi_gather"),
    "input_rate": Spot("network", "input_rate"),
    "peak_flops": Spot("pe", "peak_flops"),
    "efficiency": Spot("pe", "efficiency"),
    "memory_bandwidth": Spot("pe", "memory_bandwidth"),
    "efficiency_conv2d": Spot("pe", "convolution_2d"),
    "efficiency_conv3d": Spot("pe", "convolution_3d"),
    "efficiency_matmul": Spot("pe", "matrix_product"),
    "half_channels": Spot("pe", "half_channels"),
    "elementwise_passes": Spot("pe", "elementwise_passes"),
    "layer_overhead": Spot("pe", "layer_overhead"),
    "window_fetch": Spot("pe", "window_fetch"),
    **{each.name: Spot("software", each.name) for each in fields(Software)},
    "phi": Spot("run", "phi"),
    "delta": Spot("run", "delta"),
}


def read_spot(case: Case, name: str) -> float:
    """The value of a parameter in a case of one cell, of several levels the first."""
    spot = SPOTS[name]
    value = np.asarray(getattr(getattr(case, spot.part), spot.field))
    return float(np.ravel(value if spot.levels is None else value[spot.levels])[0])


def scale_case(case: Case, factors: Mapping[str, Cells]) -> Case:
    """The case with some parameters multiplied; what its layers take is as before."""
    for name, factor in factors.items():
        spot = SPOTS[name]
        part = getattr(case, spot.part)
        case = replace(
            case, **{spot.part: replace(part, **{spot.field: _scale(part, spot, factor)})}
        )
    return case


def evaluate_scaled(case: Case, division: Division, factors: Mapping[str, Cells]) -> Answer:
    """The answer for one cell without choices with some parameters multiplied, layers and all."""
    asked = scale_case(case, factors)
    divided = replace(division, pe=asked.pe, delta=asked.run.delta)
    return evaluate(replace(asked, work=reduce_layers(divided)))


def _scale(part: Any, spot: Spot, factor: Cells) -> Array:
    value = jnp.asarray(getattr(part, spot.field))
    if spot.levels is None:
        return value * factor
    return value.at[spot.levels].multiply(factor)
