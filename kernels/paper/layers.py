"""FW_l, BW_l, WU_l of Table III: a roofline for each layer and sample."""

from kernels.arrays import Cells, PerLayer
from kernels.names.parallelisms import KINDS
from kernels.namespace import xp
from kernels.options import Optimizer
from kernels.work.compute import PE, UPDATE_ACCESSES, roofline
from kernels.work.division import Division
from kernels.work.group import share
from kernels.work.layers import Layers, LayerTimes


def time_layers(layers: Layers, pe: PE, delta: Cells, optimizer: Optimizer) -> LayerTimes:
    """FW_l, BW_l [s a sample], WU_l [s an iteration] of items of `delta` bytes."""
    forward = layers.slowdown * time_forward(layers, pe, delta)
    # No FLOPs: an update has a few for each weight, and waits for memory. And no slowdown,
    # which is one of the measured FW_l + BW_l.
    update = UPDATE_ACCESSES[optimizer] * delta * (layers.w + layers.bias) / pe.memory_bandwidth
    nothing = xp.zeros_like(forward)
    # The backward pass computes two gradients, with the forward pass's arithmetic each.
    return LayerTimes(forward, 2 * forward, update, fixed=nothing, launches=nothing)


def time_forward(layers: Layers, pe: PE, delta: Cells) -> PerLayer:
    """Roofline seconds a sample forward; every input, output and weight crosses the memory once."""
    # Weights once a sample, though the samples of a batch could share them: in Table III FW_l is a
    # time of one sample, and so has no place for b.
    return roofline(layers.flops, delta * (layers.x + layers.y + layers.w), pe)


def find_slowdown(layers: Layers, pe: PE, delta: Cells, seconds: PerLayer) -> PerLayer:
    """Measured `seconds` FW_l + BW_l a sample over those of the roofline, of each layer."""
    return seconds / (3 * time_forward(layers, pe, delta))


def hold_layers(division: Division) -> tuple[PerLayer, PerLayer]:
    """Items a sample of each layer's activations on one PE, and of its weights; gamma left out.

    A tensor and its gradient as an output and as an input; weights with theirs, biases.
    """
    layers, part = division.layers, share(division.placement.split, division.group)
    splits = [KINDS[name].splits for name in division.parallelisms]
    rows = part if "rows" in splits else 1.0
    weights = part if "weights" in splits else 1.0
    return rows * (layers.x + layers.y), 2 * weights * layers.w + layers.bias
