"""Rows of layers that a spatial group divides: halos, and a PE's share.

ParaDL, section 4.4: a convolution needs a halo of (K-1)/2 rows of its neighbours' input, and
backward of their output gradient.
"""

from paradl.kernels.arrays import Cells, Extents, Factors, PerLayer, empty_last, total, xp
from paradl.kernels.options import Halos
from paradl.kernels.work.layers import Layers


def halo(overlap: Extents, planes: PerLayer, extents: Extents, factors: Factors) -> PerLayer:
    """Count items per sample that one PE sends a neighbour: rows x C x the other local extents.

    Summed over split dimensions. planes: channels (filters) of the tensor. overlap: rows that a PE
    needs of its neighbours, on both sides together.
    """
    depth, height, width = (
        extent / factor for extent, factor in zip(extents, factors, strict=True)
    )
    # No neighbours along an unsplit dimension. For even K this is the mean of the two sides.
    rows = [o / 2 * (n > 1).astype(float) for o, n in zip(overlap, factors, strict=True)]
    sides = (height * width, depth * width, depth * height)
    items: PerLayer = planes * sum(row * side for row, side in zip(rows, sides, strict=True))
    return items


def layer_halo(layers: Layers, factors: Factors, halos: Halos) -> PerLayer:
    """Count items per sample of halo(x_l) + halo(dL/dy_l).

    halos: K_l - 1 rows of each, for all "windows" or only for "overlapping" ones; or the rows in
    "common", K_l less the stride, and for dL/dy_l that over the stride. A transposed convolution,
    whose stride is below 1, has its windows on y_l: x_l and dL/dy_l swap roles.
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
    """Count output items per sample of the last split layer; 0 if it is the network's last."""
    split = xp.asarray(split)
    later = xp.cumsum(split[::-1], axis=0)[::-1]
    # `later` counts split layers from each layer on: it is 1 at the last split layer, and at
    # unsplit layers before it.
    is_last_split = xp.where(later == 1, split, 0)
    return total(empty_last(is_last_split) * y)


def row_share(extents: Extents, factors: Factors) -> PerLayer:
    """Return the share of a tensor that the fullest PE holds: ceil(X / f) / X per dimension.

    A layer with fewer rows than PEs is divided into its rows; one of 1 x 1 x 1 stays whole.
    """
    depth, height, width = (
        xp.ceil(extent / factor) / extent for extent, factor in zip(extents, factors, strict=True)
    )
    return xp.asarray(depth * height * width)
