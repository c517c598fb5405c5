"""FW_l, BW_l, WU_l of Table III: a roofline per layer and sample."""

from paradl.kernels.arrays import Cells, PerLayer, xp
from paradl.kernels.machine.device import PE
from paradl.kernels.names.parallelisms import KINDS
from paradl.kernels.options import Optimizer
from paradl.kernels.work.compute import UPDATE_ACCESSES, roofline
from paradl.kernels.work.division import Division
from paradl.kernels.work.group import share
from paradl.kernels.work.layers import Layers, LayerTimes


def time_layers(layers: Layers, pe: PE, delta: Cells, optimizer: Optimizer) -> LayerTimes:
    """Compute FW_l, BW_l [s per sample] and WU_l [s per iteration] for items of `delta` bytes."""
    forward = layers.slowdown * time_forward(layers, pe, delta)
    # An update has few FLOPs per weight, so memory bounds it. No slowdown: that was measured for
    # FW_l + BW_l.
    update = UPDATE_ACCESSES[optimizer] * delta * (layers.w + layers.bias) / pe.memory_bandwidth
    nothing = xp.zeros_like(forward)
    # The backward pass computes two gradients, each with the forward pass's arithmetic.
    return LayerTimes(forward, 2 * forward, update, fixed=nothing, launches=nothing)


def time_forward(layers: Layers, pe: PE, delta: Cells) -> PerLayer:
    """Compute forward seconds per sample by the roofline; inputs, outputs and weights move once."""
    # Weights move once per sample, though samples of a batch could share them: in Table III FW_l is
    # the time of one sample and cannot depend on b.
    return roofline(layers.flops, delta * (layers.x + layers.y + layers.w), pe)


def find_slowdown(layers: Layers, pe: PE, delta: Cells, seconds: PerLayer) -> PerLayer:
    """Return measured `seconds` FW_l + BW_l per sample over those of the roofline, per layer."""
    return seconds / (3 * time_forward(layers, pe, delta))


def hold_layers(division: Division) -> tuple[PerLayer, PerLayer]:
    """Count items of each layer on one PE: activations per sample, and weights; without gamma.

    Inputs and outputs, for a gradient each; weights with gradients, and biases.
    """
    layers, part = division.layers, share(division.placement.split, division.group)
    splits = [KINDS[name].splits for name in division.parallelisms]
    rows = part if "rows" in splits else 1.0
    weights = part if "weights" in splits else 1.0
    return rows * (layers.x + layers.y), 2 * weights * layers.w + layers.bias
