"""Layers as the kernels take them, and which of them a group splits."""

from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from grids.entries.strategies import Which
from grids.models.layers import LayerTable
from kernels.work.layers import Layers, Rows, Sequence

Mask = tuple[bool, ...] | None


def kernel_layers(table: LayerTable) -> Layers:
    """The table as the kernels take it: spatial dimensions lead, layers follow."""
    return Layers(
        x=table.x,
        y=table.y,
        w=table.w,
        bias=table.bias,
        flops=table.flops,
        channels=table.channels,
        filters=table.filters,
        extents_x=table.extents_x.T,
        extents_y=table.extents_y.T,
        kernel=table.kernel.T,
        stride=table.stride.T,
        groups=table.groups if (table.groups > 1).any() else None,
        convolution=table.convolutions.astype(float),
        volumetric=np.full(len(table), float(table.volumetric)),
        elementwise=(~table.multiplying).astype(float),
        kept_items=table.kept_items,
        kept_bytes=table.kept_bytes,
        crossing=table.crossing,
        slowdown=np.ones(len(table)),
        sequence=_describe_sequence(table) if table.sequential else None,
    )


def _describe_sequence(table: LayerTable) -> Sequence:
    rows = Rows(table.looked_up, table.drawn) if table.sparse else None
    return Sequence(table.steps, table.reads, rows)


def add_cells(layers: Layers, rank: int) -> Layers:
    """The same layers, with `rank` dimensions of cells behind them."""

    def append(each: Any) -> Any:
        return each.reshape(*each.shape, *(1,) * rank)

    spread: Layers = jax.tree.map(append, layers)
    return spread


def split_layers(which: Which, mask: Mask, default: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """True if a group splits each layer [G]: the user's mask, all, or the strategy's own."""
    if mask is not None:
        return np.array(mask)
    return np.ones_like(default) if which == "all" else default
