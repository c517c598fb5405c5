"""Processing elements: what a PE can do, as data sheets and measurements have it; their number."""

import math
from collections.abc import Mapping
from functools import reduce
from operator import mul

from paradl.kernels.arrays import Cells, pytree


@pytree
class PE:
    """A processing element: rates and shares of them; the defaults are those of Table III.

    Parameters under their own names, or nearly so (`configuration.places`): meanings, units and
    priors are in grids/entries/parameters.py and machine_parameters.py, effects in docs/machine.md.
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
