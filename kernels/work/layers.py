"""A network as the oracle takes it: the sizes of its layers, and how long each of them takes.

ParaDL (HPDC 2021), section 4.1: |x_l|, |y_l| items a sample in and out, |w_l| weights, |bi_l|
biases, C_l channels, F_l filters, spatial extents X_l, kernel K_l; FW_l, BW_l seconds a sample,
WU_l seconds an iteration.
"""

from dataclasses import dataclass

import jax

from kernels.arrays import Extents, PerLayer


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Layers:
    """Sizes of the layers l = 1..G of one model for one sample shape.

    Extents and kernels lie along (depth, height, width), 1 where the network has fewer dimensions.
    `kernel` is what a window spans, `stride` rows of x from one row of y to the next, below 1 of a
    transposed convolution; `groups`, of channels and filters that know nothing of each other, None
    where all convolutions are dense: then the program has nothing of them, and rounds as it did.
    `convolution` is 1 for each that is one, `volumetric` where it has a depth; `elementwise`, for
    each without a matrix product (activation, normalisation, pooling, addition). `kept_items` and
    `kept_bytes` are what the backward pass reads of the tensors that a layer makes; `crossing`,
    the items of all tensors that later layers read of it and of those before it. `slowdown` is the
    measured time of a layer over its roofline time on the machine where it was measured, 1 where
    nothing was measured. `sequence`: of networks that have steps in a row, or tables of words.
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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sequence:
    """Effect of a sequence's positions on a pass, 1 in layers that have none.

    `steps` are products that wait for each other, each with a start-up; `reads` is how often
    weights cross the memory, of once in each of three passes (forward, and two gradients).
    """

    steps: PerLayer
    reads: PerLayer
    rows: "Rows | None" = None  # where a gradient is not whole


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rows:
    """Weights of the rows of a table that a pass touches, whose gradient has no others.

    looked_up: a sample; 0 in layers whose gradient is whole. drawn: a pass, whatever its batch.
    """

    looked_up: PerLayer
    drawn: PerLayer


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LayerTimes:
    """FW_l and BW_l [s a sample] and WU_l [s an iteration] of every layer on one PE.

    fixed [s a pass]: what it takes whatever the batch, its weights' traffic. launches [1 a pass]:
    layers that the host launches, a recurrent one at each position. Both are 0 in Table III, where
    each sample reads the weights.
    """

    forward: PerLayer
    backward: PerLayer
    update: PerLayer
    fixed: PerLayer
    launches: PerLayer
