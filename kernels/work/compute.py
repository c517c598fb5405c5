"""Seconds of a layer on one PE.

A roofline (Williams et al. 2009): a layer is bound by FLOP/s or by memory traffic, times a measured
slowdown. The backward pass computes two gradients, of the input and of the weights, each with the
forward pass's arithmetic. Forward and backward, a batch of b samples takes T_l(b) = b s_l + f_l;
Table III has only s_l (docs/machine.md).
"""

from dataclasses import replace

from paradl.kernels.arrays import Cells, PerLayer, xp
from paradl.kernels.machine.device import PE
from paradl.kernels.options import Optimizer, Options
from paradl.kernels.work.layers import Layers, LayerTimes, Sequence, find_rows, is_table

# Items moved between memory and PE per weight and bias in one update.
UPDATE_ACCESSES: dict[Optimizer, float] = {
    "sgd": 5.0,  # with momentum: read weight, gradient, velocity; write weight, velocity
    "adam": 7.0,  # read weight, gradient, two moments; write weight, two moments
    "none": 0.0,  # no update, as in the authors' predictions
}

WIDEST = 11  # rows of a window that tiles of FFTs, of 32 x 32, still serve well
LEAST = 1e-30  # [s] keeps quotients of zero times finite
LEAST_DEVICE = 0.5  # least share of a measured pass that is the device's
# Bytes per item of an update in any precision: masters and states are in single precision, and
# what SGD saves by 2-byte gradients is spent on 2-byte copies of weights (docs/machine.md).
MASTER_BYTES = 4.0


def forward_alone(layers: Layers, pe: PE, delta: Cells) -> PerLayer:
    """Compute forward seconds per sample without weights' traffic, s_l / 3."""
    traffic = delta * (layers.x + layers.y)
    flops = layers.flops / (_save_products(layers, pe) * _reach_peak(layers, pe))
    arithmetic, moving = flops / (pe.peak_flops * pe.efficiency), traffic / pe.memory_bandwidth
    # A kernel hides `kernel_overlap` of the shorter: all in the roofline's maximum.
    shorter = xp.minimum(arithmetic, moving)
    multiplying = xp.maximum(arithmetic, moving) + (1 - pe.kernel_overlap) * shorter
    dense = layers.convolution
    if layers.groups is not None:
        fetched = delta * count_fetched(layers.flops, layers.filters, layers.groups)
        fetching = fetched / (pe.window_fetch * pe.memory_bandwidth)
        multiplying = xp.maximum(multiplying, fetching)
        dense = dense * xp.equal(layers.groups, 1)
    # Kernels that transpose inputs and outputs of dense convolutions.
    multiplying += dense * pe.layout_passes / 3 * traffic / pe.memory_bandwidth
    moving = pe.elementwise_passes / 3 * traffic / pe.memory_bandwidth
    return xp.where(xp.equal(layers.elementwise, 1), moving, multiplying)


def _reach_peak(layers: Layers, pe: PE) -> PerLayer:
    """Return the share of the peak that a layer's kernels reach, e_k g_l."""
    flat = layers.convolution * (1 - layers.volumetric)
    volumetric = layers.convolution * layers.volumetric
    product = 1 - layers.convolution - layers.elementwise
    kind = (
        flat * pe.convolution_2d
        + volumetric * pe.convolution_3d
        + product * pe.matrix_product
        + layers.elementwise  # any value: these are bound by traffic
    )
    # Setting up a tile takes long relative to few summed products: those of a whole window,
    # C/groups k_h k_w, in an implicit matrix product (Chetlur et al. 2014). For volumes that form
    # is off by a factor of 2.3 for CosmoFlow, left out of the fit; channels alone by 1.2.
    window = xp.where(volumetric, 1.0, layers.kernel[1] * layers.kernel[2])
    channels = layers.channels if layers.groups is None else layers.channels / layers.groups
    summed = channels * window
    filled = summed / (summed + pe.half_channels)
    # The last tile is computed in full, even with few filters.
    tile = xp.where(volumetric, pe.tile_filters / 2, pe.tile_filters)
    filled = filled * layers.filters / (tile * xp.ceil(layers.filters / tile))
    return xp.asarray(kind * filled)


def _save_products(layers: Layers, pe: PE) -> PerLayer:
    """Return times fewer products by transforming tiles, of dense 2-D windows k x k of stride 1.

    Winograd's F(2 x 2, k x k) makes 4 outputs by (k + 1)^2 products instead of 4 k^2 (Lavin and
    Gray 2015): 2.25 times fewer for k = 3, of which kernels gain `winograd`, and none for k = 1.
    FFTs do no worse with larger windows (Vasilache et al. 2015, arXiv 1412.7580).
    """
    (_, high, wide), (_, down, across) = layers.kernel, layers.stride
    flat = xp.equal(layers.convolution * (1 - layers.volumetric), 1)
    square = xp.equal(high, wide) & xp.greater(high, 2) & xp.less(high, WIDEST + 1)
    dense = True if layers.groups is None else xp.equal(layers.groups, 1)
    suits = flat & square & xp.equal(down, 1) & xp.equal(across, 1) & dense
    # The same share of the logarithm for any k.
    share = xp.log(2 * high / (high + 1)) / xp.log(xp.asarray(2 * 3 / (3 + 1)))
    return xp.where(suits, pe.winograd ** xp.where(suits, share, 1.0), 1.0)


def count_fetched(flops: PerLayer, filters: PerLayer, groups: PerLayer) -> PerLayer:
    """Count items per sample that a grouped convolution fetches: all windows of each group.

    0 for dense ones, whose tiles keep inputs while all filters pass over them. Of several forms
    this one fits published images/s best (`python -m benchmarks priors`).
    """
    return xp.where(xp.greater(groups, 1), flops / 2 * groups / filters, 0.0)


def slowdown(
    layers: Layers, pe: PE, delta: Cells, seconds: PerLayer, batch: Cells, launch: Cells
) -> PerLayer:
    """Return the measured over the computed time of a network, on the PE of the measurement.

    seconds: measured FW_l + BW_l per sample, with `batch` samples at once. launch: seconds in which
    that host launches a layer.
    """
    forward, fixed, launches = _time_passes(layers, pe, delta)
    one_pass = xp.sum(3 * batch * forward + fixed, axis=0)
    measured = batch * xp.sum(xp.asarray(seconds), axis=0)
    # One factor for the whole network, since layers were not measured separately.
    whole = without_launches(measured, launch * xp.sum(launches, axis=0)) / one_pass
    return xp.broadcast_to(whole, xp.shape(forward))


def wait_for_launches(device: Cells, launching: Cells) -> Cells:
    """Compute seconds that a PE waits for its host: (x^4 + y^4)^(1/4) - x, about max(x, y) - x.

    device: x [s] of work. launching: y [s] in which the host launches it, running ahead of the PE
    (CUDA C++ Programming Guide, Asynchronous Concurrent Execution). The maximum is smooth so that
    slopes do not jump; if both are equal it is 19 % above them.
    """
    longer, shorter = xp.maximum(device, launching), xp.minimum(device, launching)
    fourth = xp.square(xp.square(shorter / xp.maximum(longer, LEAST)))
    whole = xp.maximum(longer * xp.sqrt(xp.sqrt(1 + fourth)), LEAST)
    # M - x = y^4 / ((M + x) (M^2 + x^2)): a difference would lose the digits of a short wait.
    x, y = device / whole, launching / whole
    return whole * xp.square(xp.square(y)) / ((1 + x) * (1 + xp.square(x)))


def without_launches(measured: Cells, launching: Cells) -> Cells:
    """Compute the device's seconds in a `measured` pass that took `launching` seconds to launch.

    This inverts the smooth maximum. A pass as long as its launches says nothing about the device:
    at least half of it is assumed to be the device's.
    """
    fourth = xp.square(xp.square(launching / measured))
    return measured * xp.sqrt(xp.sqrt(xp.maximum(1 - fourth, LEAST_DEVICE**4)))


def layer_times(layers: Layers, pe: PE, delta: Cells, options: Options) -> LayerTimes:
    """Compute the times of layers with items of `delta` bytes."""
    forward, fixed, launches = _time_passes(layers, pe, delta)
    weights, rows = layers.w + layers.bias, find_rows(layers)
    # Of a table with a sparse gradient an update moves the drawn rows. Those that a sample looks up
    # are left out: they move less than what is made of them.
    updated = weights if rows is None else xp.where(is_table(rows), rows.drawn, weights)
    times = LayerTimes(
        forward=layers.slowdown * forward,
        backward=layers.slowdown * (2 * forward),
        update=UPDATE_ACCESSES[options.optimizer] * MASTER_BYTES * updated / pe.memory_bandwidth,
        fixed=layers.slowdown * fixed,
        launches=launches,  # by the host: a profile of the device does not change them
    )
    if layers.rerun is not None:
        return _run_again(times, layers.rerun.again)
    return times if options.recompute == "none" else _run_again(times, 1.0)


def _time_passes(layers: Layers, pe: PE, delta: Cells) -> tuple[PerLayer, PerLayer, PerLayer]:
    """Return forward seconds per sample by the roofline, fixed ones per pass, and launches."""
    forward = forward_alone(layers, pe, delta)
    if layers.sequence is None:
        fixed = 3 * delta * (layers.w + layers.bias) / pe.memory_bandwidth
        return forward, fixed, xp.ones_like(fixed)
    fixed = _time_sequence(layers, layers.sequence, pe, delta)
    return forward, fixed, xp.asarray(layers.sequence.steps)


def _time_sequence(layers: Layers, sequence: Sequence, pe: PE, delta: Cells) -> PerLayer:
    """Compute seconds per pass that do not depend on the batch, in networks with sequential steps.

    Products of sequential steps have few rows and leave their last tile partly empty, as if they
    had a few more samples. This holds forward and for gradients of inputs; gradients of weights are
    a single product over all positions.
    """
    weights = 3 * delta * (sequence.reads * layers.w + layers.bias) / pe.memory_bandwidth
    is_sequential = xp.greater(sequence.steps, 1) & xp.equal(layers.elementwise, 0)
    forward = layers.flops / _reach_peak(layers, pe) / (pe.peak_flops * pe.efficiency)
    # A tile has a quarter as many rows as filters; the last one is half empty on average. In
    # PipeDream's profile of GNMT LSTMs take 0.44 and 0.56 of the classifier's time; this gives 0.37
    # and 0.48.
    empty = (pe.tile_filters - 1) / 8
    return weights + xp.where(is_sequential, 2 * empty * forward, 0.0)


def _run_again(times: LayerTimes, again: PerLayer | float) -> LayerTimes:
    """Return the times with recomputation; the forward pass is a third of a layer's time.

    again: 1 for layers that run forward once more, else 0.
    """
    return replace(
        times,
        forward=(1 + again) * times.forward,
        fixed=(1 + again / 3) * times.fixed,
        launches=(1 + again / 3) * times.launches,
    )
