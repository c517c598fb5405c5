"""Sums over layers and stages, and items of halos, as Table III has them.

The machine oracle has its own (`kernels.work`), which may change.
"""

from paradl.kernels.arrays import (
    Cells,
    Ends,
    Extents,
    Factors,
    PerLayer,
    PerStage,
    empty_last,
    take_at,
    total,
    xp,
)
from paradl.kernels.options import Conventions
from paradl.kernels.paper.inputs import TableLayers


def held(values: PerLayer, split: PerLayer, degree: Cells) -> Cells:
    """Sum what one of q PEs holds of all layers, values (s/q + 1 - s).

    Written so that layers are summed once for all q, and that q = 1 gives exactly the total.
    """
    return total(values) - (1 - 1 / degree) * total(values * split)


def stage_sums(values: PerLayer, ends: Ends) -> PerStage:
    """Sum over each stage's layers, as a difference of prefix sums."""
    prefix = xp.cumsum(xp.asarray(values), axis=0)
    prefix = xp.concatenate([xp.zeros_like(prefix[:1]), prefix])
    starts = xp.concatenate([xp.zeros_like(ends[:1]), ends[:-1]])
    # A stage that a cell lacks starts and ends at G, which gives exactly 0.
    return take_at(prefix, ends) - take_at(prefix, starts)


def largest(values: PerLayer, ends: Ends) -> Cells:
    """Return max_i of the sum over stage G_i."""
    return xp.max(stage_sums(values, ends), axis=0)


def passed_on(y: PerLayer, ends: Ends, degree: Cells) -> Cells:
    """Return the most items that one of q stages passes on, max_{i < q} |y_Gi|; 0 for one."""
    # A float, like degrees, to avoid implicit conversion. The last stage sends nothing.
    stage = xp.arange(1, ends.shape[0] + 1, dtype=float).reshape(-1, *[1] * (ends.ndim - 1))
    return xp.max(xp.where(stage < degree, take_at(xp.asarray(y), ends - 1), 0), axis=0)


def count_halos(layers: TableLayers, factors: Factors, conventions: Conventions) -> PerLayer:
    """Count items per sample of halo(x_l) + halo(dL/dy_l): (K-1)/2 rows of each.

    ParaDL, section 4.4. The table's are of windows that overlap, the authors' of all windows.
    """
    overlap = layers.kernel - 1
    if conventions == "table":
        stride = layers.stride
        common = xp.maximum(layers.kernel - xp.maximum(stride, 1 / stride), 0.0)
        overlap = xp.where(common > 0, overlap, 0.0)
    return _count_rows(overlap, layers.channels, layers.extents_x, factors) + _count_rows(
        overlap, layers.filters, layers.extents_y, factors
    )


def _count_rows(overlap: Extents, planes: PerLayer, extents: Extents, factors: Factors) -> PerLayer:
    """Count items that one PE sends a neighbour: rows x planes x the other local extents.

    Summed over split dimensions. overlap: rows of both sides together.
    """
    depth, height, width = (
        extent / factor for extent, factor in zip(extents, factors, strict=True)
    )
    # No neighbours along an unsplit dimension. For even K this is the mean of the two sides.
    rows = [o / 2 * (n > 1).astype(float) for o, n in zip(overlap, factors, strict=True)]
    sides = (height * width, depth * width, depth * height)
    items: PerLayer = planes * sum(row * side for row, side in zip(rows, sides, strict=True))
    return items


def split_point(y: PerLayer, split: PerLayer) -> Cells:
    """Count output items per sample of the last split layer; 0 if it is the network's last."""
    split = xp.asarray(split)
    later = xp.cumsum(split[::-1], axis=0)[::-1]
    # `later` counts split layers from each layer on: it is 1 at the last split layer, and at
    # unsplit layers before it.
    is_last_split = xp.where(later == 1, split, 0)
    return total(empty_last(is_last_split) * y)
