"""Filter and channel parallelism: a layer's filters (channels) divided among the PEs of a group.

ParaDL, Table III, rows Filter and Channel. Filter gathers y_l forward and reduces dL/dx_l backward;
channel reduces y_l forward and gathers dL/dx_l backward: the same two collectives in another order.
The last layer's output is not exchanged.
"""

from dataclasses import replace

import jax.numpy as jnp

from kernels.arrays import Cells, PerLayer
from kernels.collectives import Algorithm
from kernels.group import GroupWork, Placement, merged, share, shared_work, total
from kernels.layers import Layers, LayerTimes


def exchanged(split: PerLayer) -> PerLayer:
    """1 for each layer whose output the group exchanges: split, and not the last (l < G)."""
    return jnp.asarray(split).at[-1].set(0)


def work(
    layers: Layers,
    times: LayerTimes,
    placement: Placement,
    p2: Cells,
    b: Cells,
    algorithm: Algorithm,
) -> GroupWork:
    """Weights, their update and the compute divide by p2 in split layers; activations do not."""
    part = share(placement.split, p2)
    gathers = exchanged(placement.split)
    gathered = gathers * layers.y
    if algorithm != "best":  # both costs are linear in the size, so the layers' sum is enough
        gathers, gathered = merged(gathers), merged(gathered)
    return replace(
        shared_work(layers, times, part, b),
        update=total(times.update * part),
        memory_items=b * total(2 * (layers.x + layers.y))
        + total(2 * layers.w * part + layers.bias),
        gradient=total(layers.w * part),
        gathered=gathered,
        gathers=gathers,
    )
