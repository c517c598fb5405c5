"""Input of the oracle about a network: sizes of its layers, and their times.

ParaDL (HPDC 2021), section 4.1: |x_l|, |y_l| items per sample in and out, |w_l| weights, |bi_l|
biases, C_l channels, F_l filters, spatial extents X_l, kernel K_l; FW_l, BW_l seconds per sample,
WU_l seconds per iteration.
"""

from paradl.kernels.arrays import Cells, Extents, Flags, PerLayer, Single, pytree, xp


@pytree
class Layers:
    """Sizes of the layers l = 1..G of one model for one sample shape.

    extents_x, extents_y, kernel, stride: along (depth, height, width), 1 in missing dimensions;
    kernel is the span of a window, stride the rows of x per row of y, below 1 in transposed
    convolutions. convolution, volumetric, elementwise: 1 for layers that are convolutions, have a
    depth, or have no matrix product (activation, normalisation, pooling, addition), else 0.
    kept_items, kept_bytes: of a layer's outputs, what the backward pass reads. crossing: items of
    all tensors of this and earlier layers that later ones read. slowdown: measured over roofline
    time on the machine of the measurement; 1 if not measured. groups: of grouped convolutions;
    None if all are dense, since programs then round as they did without. sequence: of networks
    with sequential steps or tables of words. rerun: of those without cheap outputs.
    """

    x: PerLayer
    y: PerLayer
    w: PerLayer
    bias: PerLayer
    flops: PerLayer
    channels: PerLayer
    filters: PerLayer
    extents_x: Extents
    extents_y: Extents
    kernel: Extents
    stride: Extents
    convolution: PerLayer
    volumetric: PerLayer
    elementwise: PerLayer
    kept_items: PerLayer
    kept_bytes: PerLayer
    crossing: PerLayer
    slowdown: PerLayer
    groups: PerLayer | None = None
    sequence: "Sequence | None" = None
    rerun: "Rerun | None" = None


@pytree
class Rerun:
    """Layers that run again in the backward pass, which keeps no outputs of cheap ones.

    again: 1 for those that do. items, bytes: what is computed again for the backward pass of each
    layer, there at once.
    """

    again: PerLayer
    items: PerLayer
    bytes: PerLayer


@pytree
class Sequence:
    """Effect of a sequence's positions on a pass; 1 in layers without.

    steps: sequential products, each with a start-up. reads: how often weights are read, relative
    to once in each of three passes (forward, and two gradients).
    """

    steps: PerLayer
    reads: PerLayer
    rows: "TouchedRows | None" = None  # with sparse gradients


@pytree
class TouchedRows:
    """Weights of the rows of a table that a pass touches; its sparse gradient has no others.

    looked_up: per sample, 0 in layers with a whole gradient. drawn: per pass, whatever its batch.
    """

    looked_up: PerLayer
    drawn: PerLayer


@pytree
class LayerTimes:
    """FW_l and BW_l [s per sample] and WU_l [s per iteration] of every layer on one PE.

    fixed [s per pass]: weights' traffic, whatever the batch. launches [per pass]: layers that the
    host launches, recurrent ones at each position. Both are 0 in Table III, where each sample
    reads the weights.
    """

    forward: PerLayer
    backward: PerLayer
    update: PerLayer
    fixed: PerLayer
    launches: PerLayer


def find_rows(layers: Layers) -> TouchedRows | None:
    """Return the touched rows of a network's tables; None if all gradients are whole."""
    return None if layers.sequence is None else layers.sequence.rows


def is_table(rows: TouchedRows) -> Flags:
    """True for layers with a sparse gradient."""
    return xp.greater(rows.looked_up, 0)


def total(values: PerLayer) -> Cells:
    """Sum over the layers."""
    return xp.sum(xp.asarray(values), axis=0)


def merged(values: PerLayer) -> Single:
    """Sum over the layers as a single message or stage [1, cells]."""
    return xp.sum(xp.asarray(values), axis=0, keepdims=True)
