"""Rows of layers that a spatial group divides: what neighbours send, and what a PE holds.

ParaDL, section 4.4: a convolution needs a halo of (K-1)/2 rows of its neighbours' input forward and
of their output gradient backward.
"""

from kernels.arrays import Cells, Extents, Factors, PerLayer
from kernels.namespace import empty_last, xp
from kernels.options import Halos
from kernels.work.group import total
from kernels.work.layers import Layers


def halo(overlap: Extents, planes: PerLayer, extents: Extents, factors: Factors) -> PerLayer:
    """Items a sample that one PE sends a neighbour: rows x C x the other local extents.

    Summed over the dimensions that are split; `planes` are the channels (filters) of the tensor,
    `overlap` the rows of its neighbours, on both sides together, that a PE needs of it.
    """
    depth, height, width = (
        extent / factor for extent, factor in zip(extents, factors, strict=True)
    )
    # No neighbour along a dimension that is whole. Where K is even, the mean of the two sides.
    rows = [o / 2 * (n > 1).astype(float) for o, n in zip(overlap, factors, strict=True)]
    sides = (height * width, depth * width, depth * height)
    items: PerLayer = planes * sum(row * side for row, side in zip(rows, sides, strict=True))
    return items


def layer_halo(layers: Layers, factors: Factors, halos: Halos) -> PerLayer:
    """Items a sample of halo(x_l) + halo(dL/dy_l).

    K_l - 1 rows of each, of all "windows" or of "overlapping" ones, where neighbours' windows have
    a row in common. Or the rows in "common": K_l less the stride, of dL/dy_l a stride's part of
    them. A transposed convolution's windows lie on y_l: its stride is below 1, and of x_l it is the
    part.
    """
    stride = layers.stride
    forward = backward = layers.kernel - 1
    if halos != "windows":
        common = xp.maximum(layers.kernel - xp.maximum(stride, 1 / stride), 0.0)
        if halos == "overlapping":
            forward = backward = xp.where(common > 0, forward, 0.0)
        else:
            forward = common * xp.minimum(stride, 1.0)
            backward = common / xp.maximum(stride, 1.0)
    return halo(forward, layers.channels, layers.extents_x, factors) + halo(
        backward, layers.filters, layers.extents_y, factors
    )


def split_point(y: PerLayer, split: PerLayer) -> Cells:
    """Items a sample of the last split layer's output; 0 where that is the network's last layer."""
    split = xp.asarray(split)
    later = xp.cumsum(split[::-1], axis=0)[::-1]
    # `later`, the split layers from here on, is 1 at the last one, and before it at layers whose
    # split is 0.
    is_last_split = xp.where(later == 1, split, 0)
    return total(empty_last(is_last_split) * y)


def row_share(extents: Extents, factors: Factors) -> PerLayer:
    """The part of a tensor that the fullest PE holds: ceil(X / f) / X in each dimension.

    A layer of fewer rows than PEs is divided as far as it has rows; all of 1 x 1 x 1 is whole.
    """
    depth, height, width = (
        xp.ceil(extent / factor) / extent for extent, factor in zip(extents, factors, strict=True)
    )
    return xp.asarray(depth * height * width)
