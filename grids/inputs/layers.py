"""Layers in the form that kernels take, and the choice of layers that a group splits."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from paradl.grids.entries.strategy_words import Which
from paradl.grids.models.layers import LayerTable
from paradl.kernels.names.arrays import Flags
from paradl.kernels.work.layers import Layers, Rerun, Sequence, TouchedRows


def kernel_layers(table: LayerTable) -> Layers:
    """Convert a table for the kernels: spatial dimensions first, then layers."""
    rows = TouchedRows(table.looked_up, table.drawn) if table.sparse else None
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
        sequence=Sequence(table.steps, table.reads, rows) if table.sequential else None,
    )


def _drop_cheap(table: LayerTable) -> Layers:
    """Convert a table whose cheap layers run again in the backward pass."""
    items, remembered = table.rerun_items, table.rerun * table.kept_bytes
    return replace(
        kernel_layers(table),
        kept_items=table.kept_items - items,
        kept_bytes=table.kept_bytes - remembered,
        rerun=Rerun(table.rerun * 1.0, *map(table.count_rerun, (items, remembered))),
    )


# All machines and strategies share those of a network; uncached, dividing rows takes 0.4 ms for
# each of thousands of groups of ResNet-50, and not 0.2.
@lru_cache(maxsize=64)
def spread_layers(table: LayerTable, rank: int, *, keeps_cheap: bool = True) -> Layers:
    """Return the layers with `rank` dimensions of cells behind every array.

    keeps_cheap: whether outputs of cheap layers are kept for the backward pass, or computed again.
    """

    def append(array: Any) -> Any:
        return array.reshape(*array.shape, *(1,) * rank)

    layers = kernel_layers(table) if keeps_cheap else _drop_cheap(table)
    spread: Layers = jax.tree.map(append, layers)
    return spread


def split_layers(which: Which, default: Flags) -> Flags:
    """Return which layers a group splits [G]: all, or the strategy's default."""
    return np.ones_like(default) if which == "all" else default
