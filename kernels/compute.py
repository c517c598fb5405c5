"""Compute: seconds a layer takes on one PE.

A roofline (Williams et al. 2009) under which a layer is bound by FLOP/s or by memory traffic, times
the slowdown that a measurement showed. The backward pass computes two gradients, of the input and
of the weights, with the forward pass's arithmetic each.
"""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from kernels.arrays import Cells, PerLayer
from kernels.compiled import compiled
from kernels.layers import Layers, LayerTimes

Optimizer = Literal["sgd", "adam", "none"]

# Items moved between memory and the PE for each weight and bias in one update.
UPDATE_ACCESSES: dict[Optimizer, float] = {
    "sgd": 5.0,  # with momentum: read weight, gradient, velocity; write weight, velocity
    "adam": 7.0,  # read weight, gradient, two moments; write weight, two moments
    "none": 0.0,  # leave the update out, as the authors' own predictions do
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PE:
    """One processing element: FLOP/s, the share of them that layers reach, memory [B], [B/s]."""

    peak_flops: Cells
    efficiency: Cells
    memory_capacity: Cells
    memory_bandwidth: Cells


def roofline(flops: PerLayer, traffic: PerLayer, pe: PE) -> PerLayer:
    """Seconds for `flops` FLOPs and `traffic` bytes: the slower of the two."""
    # Efficiency is of arithmetic alone: 0.5 on ABCI, where the authors count 7.8e12 of a V100's
    # 15.7e12 FLOP/s (grids/catalogue/systems/abci.yaml).
    return jnp.maximum(flops / (pe.peak_flops * pe.efficiency), traffic / pe.memory_bandwidth)


def forward_roofline(layers: Layers, pe: PE, delta: Cells) -> PerLayer:
    """Roofline seconds a sample forward; every input, output and weight crosses the memory once."""
    # Weights once a sample, though the samples of a batch could share them: in Table III FW_l is a
    # time of one sample, and so has no place for b.
    return roofline(layers.flops, delta * (layers.x + layers.y + layers.w), pe)


@compiled()
def slowdown(layers: Layers, pe: PE, delta: Cells, seconds: PerLayer) -> PerLayer:
    """Measured `seconds` FW_l + BW_l a sample over the roofline's on the PE of the measurement."""
    return seconds / (3 * forward_roofline(layers, pe, delta))  # backward is twice forward


@compiled("optimizer")
def layer_times(layers: Layers, pe: PE, delta: Cells, optimizer: Optimizer = "sgd") -> LayerTimes:
    """FW_l, BW_l [s a sample] and WU_l [s an iteration] of items of `delta` bytes."""
    forward = layers.slowdown * forward_roofline(layers, pe, delta)
    # No FLOPs: an update has a few for each weight, and waits for memory. And no slowdown, which is
    # one of the measured FW_l + BW_l.
    traffic = UPDATE_ACCESSES[optimizer] * delta * (layers.w + layers.bias)
    return LayerTimes(forward, 2 * forward, traffic / pe.memory_bandwidth)
