"""Compute: seconds a layer takes on one PE.

A roofline (Williams et al. 2009) under which a layer is bound by FLOP/s or by memory traffic, times
the slowdown that a measurement showed. The backward pass computes two gradients, of the input and
of the weights, with the forward pass's arithmetic each. What a batch of b samples takes, forward
and backward: T_l(b) = b s_l + f_l, of which Table III has s_l alone (docs/machine.md).
"""

import math
from dataclasses import dataclass, replace

import jax

from kernels.arrays import Cells, Flags, PerLayer
from kernels.namespace import xp
from kernels.options import Optimizer, Options
from kernels.work.layers import Layers, LayerTimes, Sequence
from kernels.work.touched import find_rows, is_table

# Items moved between memory and the PE for each weight and bias in one update.
UPDATE_ACCESSES: dict[Optimizer, float] = {
    "sgd": 5.0,  # with momentum: read weight, gradient, velocity; write weight, velocity
    "adam": 7.0,  # read weight, gradient, two moments; write weight, two moments
    "none": 0.0,  # leave the update out, as the authors' own predictions do
}

LEAST = 1e-30  # [s] keeps a quotient of two times of nothing finite
LEAST_DEVICE = 0.5  # share of a measured pass that is at least the device's
# Bytes of an item in an update in any precision: masters and states are in single precision, and
# what SGD saves on a 2-byte gradient, a 2-byte copy of the weight costs (docs/machine.md).
MASTER_BYTES = 4.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PE:
    """One processing element: FLOP/s, the share of them that layers reach, memory [B], [B/s].

    convolution_2d, convolution_3d, matrix_product: the share that kernels of this kind reach, which
    `efficiency` multiplies; where they sum `half_channels` products they reach half of it.
    tile_filters: filters of a kernel's tile. kernel_overlap: how much of the shorter of arithmetic
    and traffic kernels hide behind the longer. window_fetch: the share of the memory's bandwidth
    with which kernels of grouped convolutions fetch their windows. layout_passes: times that items
    of dense convolutions move once more, from and to the layout that kernels take. winograd: how
    many times fewer multiplications 3 x 3 convolutions of stride 1 need. elementwise_passes: times
    that other layers move their items, forward and backward. reserved [B]: memory that no tensor
    has. As they stand, Table III's, which knows none of them.
    """

    peak_flops: Cells
    efficiency: Cells
    memory_capacity: Cells
    memory_bandwidth: Cells
    convolution_2d: Cells = 1.0
    convolution_3d: Cells = 1.0
    matrix_product: Cells = 1.0
    half_channels: Cells = 0.0
    tile_filters: Cells = 1.0
    kernel_overlap: Cells = 1.0
    window_fetch: Cells = math.inf
    layout_passes: Cells = 0.0
    winograd: Cells = 1.0
    elementwise_passes: Cells = 3.0
    reserved: Cells = 0.0


def roofline(flops: PerLayer, traffic: PerLayer, pe: PE) -> PerLayer:
    """Seconds for `flops` FLOPs and `traffic` bytes: the slower of the two."""
    # Efficiency is of arithmetic alone: 0.5 on ABCI, where the authors count 7.8e12 of a V100's
    # 15.7e12 FLOP/s (grids/catalogue/systems/abci.yaml).
    return xp.maximum(flops / (pe.peak_flops * pe.efficiency), traffic / pe.memory_bandwidth)


def forward_alone(layers: Layers, pe: PE, delta: Cells) -> PerLayer:
    """Seconds a sample forward, weights left out: s_l / 3."""
    traffic = delta * (layers.x + layers.y)
    fewer = xp.where(_suits_winograd(layers), pe.winograd, 1.0)
    multiplying = _overlap(layers.flops / (fewer * _reach_peak(layers, pe)), traffic, pe)
    if layers.groups is not None:
        fetched = delta * count_fetched(layers.flops, layers.filters, layers.groups)
        fetching = fetched / (pe.window_fetch * pe.memory_bandwidth)
        multiplying = xp.maximum(multiplying, fetching)
    multiplying += _convert_layout(layers, traffic, pe)
    moving = pe.elementwise_passes / 3 * traffic / pe.memory_bandwidth
    return xp.where(xp.equal(layers.elementwise, 1), moving, multiplying)


def _convert_layout(layers: Layers, traffic: PerLayer, pe: PE) -> PerLayer:
    """Seconds of kernels of their own that transpose what dense convolutions take and make."""
    dense = layers.convolution
    if layers.groups is not None:
        dense = dense * xp.equal(layers.groups, 1)
    return dense * pe.layout_passes / 3 * traffic / pe.memory_bandwidth


def _overlap(flops: PerLayer, traffic: PerLayer, pe: PE) -> PerLayer:
    """Seconds of a kernel that reads its first tile before it computes, and writes its last after.

    Both together where it hides nothing, the roofline's longer one where it hides all.
    """
    arithmetic = flops / (pe.peak_flops * pe.efficiency)
    moving = traffic / pe.memory_bandwidth
    shorter = xp.minimum(arithmetic, moving)
    return xp.maximum(arithmetic, moving) + (1 - pe.kernel_overlap) * shorter


def _reach_peak(layers: Layers, pe: PE) -> PerLayer:
    """The part of the peak that a layer's kernels reach, e_k g_l."""
    flat = layers.convolution * (1 - layers.volumetric)
    volumetric = layers.convolution * layers.volumetric
    product = 1 - layers.convolution - layers.elementwise
    kind = (
        flat * pe.convolution_2d
        + volumetric * pe.convolution_3d
        + product * pe.matrix_product
        + layers.elementwise  # bound by its traffic, whatever this is
    )
    # Tiles take long to set up where few products are summed: those of a whole window, C k_h k_w,
    # in an implicit matrix product (Chetlur et al. 2014). Of volumes that form is 2.3 times off for
    # CosmoFlow left out of the fit, channels alone 1.2.
    window = xp.where(volumetric, 1.0, layers.kernel[1] * layers.kernel[2])
    summed = layers.channels * window
    filled = summed / (summed + pe.half_channels)
    # The last tile is computed whole, however few filters are in it.
    tile = xp.where(volumetric, pe.tile_filters / 2, pe.tile_filters)
    filled = filled * layers.filters / (tile * xp.ceil(layers.filters / tile))
    return xp.asarray(kind * filled)


def _suits_winograd(layers: Layers) -> Flags:
    """True if a layer is a dense 2-D convolution of 3 x 3 windows of stride 1.

    Winograd's F(2 x 2, 3 x 3) takes 2.25 times fewer multiplications (Lavin and Gray 2015).
    """
    (_, *kernel), (_, *stride) = layers.kernel, layers.stride
    flat = xp.equal(layers.convolution * (1 - layers.volumetric), 1)
    threes = xp.equal(kernel[0], 3) & xp.equal(kernel[1], 3)
    dense = True if layers.groups is None else xp.equal(layers.groups, 1)
    return flat & threes & xp.equal(stride[0], 1) & xp.equal(stride[1], 1) & dense


def count_fetched(flops: PerLayer, filters: PerLayer, groups: PerLayer) -> PerLayer:
    """Items a sample that a grouped convolution fetches: each window, for its group's filters.

    0 of dense ones, whose tiles hold what comes in while all filters pass over it. Of the forms
    that were tried on published images/s (`benchmarks grouped`) this one is the nearest.
    """
    return xp.where(xp.greater(groups, 1), flops / 2 * groups / filters, 0.0)


def slowdown(
    layers: Layers, pe: PE, delta: Cells, seconds: PerLayer, batch: Cells, launch: Cells
) -> PerLayer:
    """Measured `seconds` FW_l + BW_l a sample over those of the formulas on the PE of the
    measurement, which was taken with `batch` samples at once, where the host took `launch` seconds
    to launch a layer.
    """
    times = _time_passes(layers, pe, delta)
    one_pass = xp.sum(3 * batch * times.forward + times.fixed, axis=0)
    measured = batch * xp.sum(xp.asarray(seconds), axis=0)
    # One factor for the network, and not one a layer: only the whole of it was measured.
    whole = without_launches(measured, launch * xp.sum(times.launches, axis=0)) / one_pass
    return xp.broadcast_to(whole, xp.shape(times.forward))


def wait_for_launches(device: Cells, launching: Cells) -> Cells:
    """Seconds that a PE waits for its host: (x^4 + y^4)^(1/4) - x, about max(x, y) - x.

    device: x [s] of work. launching: y [s] in which the host launches it, running ahead of the PE
    (CUDA C++ Programming Guide, Asynchronous Concurrent Execution). The maximum is a smooth one so
    that slopes do not jump: where both are equal it is 19 % above them.
    """
    longer, shorter = xp.maximum(device, launching), xp.minimum(device, launching)
    fourth = xp.square(xp.square(shorter / xp.maximum(longer, LEAST)))
    whole = xp.maximum(longer * xp.sqrt(xp.sqrt(1 + fourth)), LEAST)
    # M - x = y^4 / ((M + x) (M^2 + x^2)): a difference would lose the digits of a short wait.
    x, y = device / whole, launching / whole
    return whole * xp.square(xp.square(y)) / ((1 + x) * (1 + xp.square(x)))


def without_launches(measured: Cells, launching: Cells) -> Cells:
    """Seconds of work in a `measured` pass whose host took `launching` seconds to launch it.

    The inverse of the smooth maximum. A pass that was launched as slowly as it was measured tells
    nothing of the device: at least half of it is taken to be the device's (an assumption).
    """
    fourth = xp.square(xp.square(launching / measured))
    return measured * xp.sqrt(xp.sqrt(xp.maximum(1 - fourth, LEAST_DEVICE**4)))


def layer_times(layers: Layers, pe: PE, delta: Cells, options: Options) -> LayerTimes:
    """FW_l, BW_l [s a sample], WU_l [s an iteration] of items of `delta` bytes, and a pass' own."""
    once, accesses = _time_passes(layers, pe, delta), UPDATE_ACCESSES[options.optimizer]
    times = LayerTimes(
        forward=layers.slowdown * once.forward,
        backward=layers.slowdown * once.backward,
        update=accesses * MASTER_BYTES * _count_updated(layers) / pe.memory_bandwidth,
        fixed=layers.slowdown * once.fixed,
        launches=once.launches,  # by the host, whatever a profile says of the device
    )
    return times if options.recompute == "none" else _run_forward_twice(times)


def _count_updated(layers: Layers) -> PerLayer:
    """Weights and biases that an update moves: of a table with a sparse gradient the drawn rows.

    Those that a sample looks up are left out: they move less than what is made of them.
    """
    weights, rows = layers.w + layers.bias, find_rows(layers)
    return weights if rows is None else xp.where(is_table(rows), rows.drawn, weights)


def _time_passes(layers: Layers, pe: PE, delta: Cells) -> LayerTimes:
    """As the roofline has them, without updates."""
    forward = forward_alone(layers, pe, delta)
    if layers.sequence is None:
        fixed = 3 * delta * (layers.w + layers.bias) / pe.memory_bandwidth
        launches = xp.ones_like(fixed)
    else:
        fixed = _time_sequence(layers, layers.sequence, pe, delta)
        launches = xp.asarray(layers.sequence.steps)
    return LayerTimes(
        forward=forward,
        backward=2 * forward,
        update=xp.zeros_like(forward),
        fixed=fixed,
        launches=launches,
    )


def _time_sequence(layers: Layers, sequence: Sequence, pe: PE, delta: Cells) -> PerLayer:
    """Seconds a pass, whatever the batch, of layers that may go from position to position.

    A product of b rows leaves a part of its tiles empty: it takes as long as with some samples
    more. So forward, and for the gradients of what came in; those of the weights are one product of
    all positions.
    """
    weights = 3 * delta * (sequence.reads * layers.w + layers.bias) / pe.memory_bandwidth
    in_a_row = xp.greater(sequence.steps, 1) & xp.equal(layers.elementwise, 0)
    forward = layers.flops / _reach_peak(layers, pe) / (pe.peak_flops * pe.efficiency)
    # A tile has a quarter as many rows as filters, the last one half empty in the mean. PipeDream's
    # profile of GNMT has LSTMs at 0.44 and 0.56 of their classifier's time, so 0.37 and 0.48.
    empty = (pe.tile_filters - 1) / 8
    return weights + xp.where(in_a_row, 2 * empty * forward, 0.0)


def _run_forward_twice(times: LayerTimes) -> LayerTimes:
    """Recomputing: forward is a third of all that a layer takes."""
    return replace(
        times,
        forward=2 * times.forward,
        fixed=4 / 3 * times.fixed,
        launches=4 / 3 * times.launches,
    )
