"""Processing elements: what a PE can do, as data sheets and measurements have it; their number."""

import math
from collections.abc import Mapping
from functools import reduce
from operator import mul

from paradl.kernels.arrays import Cells, pytree


@pytree
class PE:
    """A processing element; the defaults are those of Table III.

    peak_flops [FLOP/s], memory_capacity [B], memory_bandwidth [B/s]: of the data sheet. efficiency,
    times convolution_2d, convolution_3d or matrix_product: share of the peak that kernels of a
    kind reach; half of that with half_channels products to sum. tile_filters: filters per tile.
    kernel_overlap: share of the shorter of arithmetic and traffic hidden behind the longer.
    window_fetch: share of the bandwidth at which grouped convolutions fetch windows. layout_passes:
    extra moves of dense convolutions' items, to and from the kernels' layout. winograd: factor by
    which 3 x 3 convolutions of stride 1 save multiplications. elementwise_passes: moves of other
    layers' items, forward and backward. reserved [B]: memory outside of tensors.
    Of blocks of transformers: block_product, attention: share of the peak that large products, and
    fused attention, reach; product_moves, block_passes, score_passes: moves of a product's
    matrices, of what the backward pass reads, and of unfused attention's scores.
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
    block_product: Cells = 1.0
    product_moves: Cells = 0.0
    attention: Cells = 1.0
    block_passes: Cells = 0.0
    score_passes: Cells = 0.0


def count_pes(degrees: Mapping[str, Cells]) -> Cells:
    """Count the PEs of a group: the product of the degrees inside a replica, if there are any."""
    return reduce(mul, degrees.values()) if degrees else 1.0
