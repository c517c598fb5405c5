"""A PE's own part of each layer, which is a layer: what its group divides, it has the share of.

For the machine oracle (docs/machine.md): Table III divides times, and not what they come from.
"""

from dataclasses import replace

from kernels.arrays import Extents, Factors, PerLayer
from kernels.division import Division
from kernels.group import share
from kernels.layers import Layers
from kernels.namespace import xp


def take_own_part(division: Division) -> Layers:
    """The layers as the busiest PE of the group computes them."""
    layers = division.layers
    if division.group == "spatial":
        factors = division.placement.factors
        rows_in, rows_out = (
            row_share(layers.extents_x, factors),
            row_share(layers.extents_y, factors),
        )
        return replace(
            layers, x=layers.x * rows_in, y=layers.y * rows_out, flops=layers.flops * rows_out
        )
    if division.group not in ("filter", "channel"):
        return layers
    part = share(division.placement.split, division.p2)
    own = replace(layers, flops=layers.flops * part, w=layers.w * part)
    # By filter a PE reads all that comes in and makes its part of what goes out; by channel, the
    # other way round.
    if division.group == "filter":
        own = replace(own, y=layers.y * part)
        if layers.groups is None:
            return own
        # Of a grouped convolution it reads the channels of its filters' groups alone.
        return replace(own, x=layers.x * xp.maximum(part, 1 / layers.groups))
    return replace(own, x=layers.x * part)


def row_share(extents: Extents, factors: Factors) -> PerLayer:
    """The part of a tensor that the fullest PE holds: ceil(X / f) / X in each dimension.

    A layer of fewer rows than PEs is divided as far as it has rows; all of 1 x 1 x 1 is whole.
    """
    depth, height, width = (
        xp.ceil(extent / factor) / extent for extent, factor in zip(extents, factors, strict=True)
    )
    return xp.asarray(depth * height * width)
