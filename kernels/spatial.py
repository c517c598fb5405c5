"""Spatial parallelism: each PE of a group holds one part of every sample's height, width and depth.

ParaDL, Table III, row Spatial, and section 4.4: a convolution needs a halo of (K-1)/2 rows of its
neighbours' input forward and of their output gradient backward; weights are replicated. Where the
split ends before the last layer, the parts are gathered there, and their gradients going back.
"""

from dataclasses import replace

from kernels.arrays import Cells, Extents, Factors, PerLayer
from kernels.division import Division
from kernels.group import GroupWork, held, total, whole_work
from kernels.layers import Layers, LayerTimes
from kernels.namespace import empty_last, xp
from kernels.options import Halos


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


def work(division: Division, times: LayerTimes) -> GroupWork:
    """Activations and compute divide by p2 in split layers; weights are replicated."""
    layers, placement, p2 = division.layers, division.placement, division.p2
    split = placement.split
    items = split * layer_halo(layers, placement.factors, division.options.halos)
    return replace(
        whole_work(layers, times),
        # Update, parameters and gradient stay those of one PE: each has all the weights.
        forward_backward=total(times.forward + times.backward),
        activations=xp.expand_dims(held(2 * (layers.x + layers.y), split, p2), 0),
        halo_items=total(items),
        # A layer without a halo (kernels of 1, or not split) has no start-ups either.
        halo_exchanges=total(xp.where(items > 0, 1.0, 0.0)),
        split_items=split_point(layers.y, split),
        replicated=xp.ones(()),
        halo_stride=_find_halo_stride(placement.factors),
        logged=total(split * layers.convolution),
    )


def _find_halo_stride(factors: Factors) -> Cells:
    """How many PEs lie between neighbours along the outermost dimension that is divided."""
    depth, height, width = factors
    return xp.where(depth > 1, height * width, xp.where(height > 1, width, 1.0))


def split_point(y: PerLayer, split: PerLayer) -> Cells:
    """Items a sample of the last split layer's output; 0 where that is the network's last layer."""
    split = xp.asarray(split)
    later = xp.cumsum(split[::-1], axis=0)[::-1]
    # `later`, the split layers from here on, is 1 at the last one, and before it at layers whose
    # split is 0.
    is_last_split = xp.where(later == 1, split, 0)
    return total(empty_last(is_last_split) * y)
