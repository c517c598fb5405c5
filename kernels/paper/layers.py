"""FW_l, BW_l, WU_l of Table III: a roofline per layer and sample."""

from paradl.kernels.arrays import Cells, PerLayer, xp
from paradl.kernels.options import Optimizer
from paradl.kernels.paper.inputs import TableGroup, TableLayers, TablePE, TableTimes

# Items moved between memory and PE per weight and bias in one update.
UPDATE_ACCESSES: dict[Optimizer, float] = {
    "sgd": 5.0,  # with momentum: read weight, gradient, velocity; write weight, velocity
    "adam": 7.0,  # read weight, gradient, two moments; write weight, two moments
    "none": 0.0,  # no update, as in the authors' predictions
}


def roofline(flops: PerLayer, traffic: PerLayer, pe: TablePE) -> PerLayer:
    """Compute seconds for `flops` FLOPs and `traffic` bytes: the slower of the two."""
    # Efficiency applies only to arithmetic: 0.5 on ABCI, where the authors count 7.8e12 of a V100's
    # 15.7e12 FLOP/s (grids/catalogue/systems/abci.yaml).
    return xp.maximum(flops / (pe.peak_flops * pe.efficiency), traffic / pe.memory_bandwidth)


def time_layers(layers: TableLayers, pe: TablePE, delta: Cells, optimizer: Optimizer) -> TableTimes:
    """Compute FW_l, BW_l [s per sample] and WU_l [s per iteration] for items of `delta` bytes."""
    forward = layers.slowdown * time_forward(layers, pe, delta)
    # An update has few FLOPs per weight, so memory bounds it. No slowdown: that was measured for
    # FW_l + BW_l.
    update = UPDATE_ACCESSES[optimizer] * delta * (layers.w + layers.bias) / pe.memory_bandwidth
    # The backward pass computes two gradients, each with the forward pass's arithmetic.
    return TableTimes(forward, 2 * forward, update)


def time_forward(layers: TableLayers, pe: TablePE, delta: Cells) -> PerLayer:
    """Compute forward seconds per sample by the roofline; inputs, outputs and weights move once."""
    # Weights move once per sample, though samples of a batch could share them: in Table III FW_l is
    # the time of one sample and cannot depend on b.
    return roofline(layers.flops, delta * (layers.x + layers.y + layers.w), pe)


def find_slowdown(layers: TableLayers, pe: TablePE, delta: Cells, seconds: PerLayer) -> PerLayer:
    """Return measured `seconds` FW_l + BW_l per sample over those of the roofline, per layer."""
    return seconds / (3 * time_forward(layers, pe, delta))


def hold_layers(group: TableGroup) -> tuple[PerLayer, PerLayer]:
    """Count items of each layer on one PE: activations per sample, and weights; without gamma.

    Inputs and outputs, for a gradient each; weights with gradients, and biases.
    """
    layers, part = group.layers, xp.asarray(group.split / group.degree + (1 - group.split))
    rows = part if "rows" in group.divides else 1.0
    weights = part if {"filters", "channels"} & {*group.divides} else 1.0
    return rows * (layers.x + layers.y), 2 * weights * layers.w + layers.bias
