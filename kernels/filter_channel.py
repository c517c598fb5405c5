"""Filter and channel parallelism: a layer's filters (channels) divided among the PEs of a group.

ParaDL, Table III, rows Filter and Channel. Filter gathers y_l forward and reduces dL/dx_l backward;
channel reduces y_l forward and gathers dL/dx_l backward: the same two collectives in another order.
The last layer's output is not exchanged.
"""

from dataclasses import replace
from typing import Literal

import jax.numpy as jnp

from kernels.arrays import Cells, PerLayer
from kernels.collectives import Algorithm
from kernels.group import GroupWork, Placement, held, merged, total, whole_work
from kernels.layers import Layers, LayerTimes


def exchanged(split: PerLayer) -> PerLayer:
    """1 for each layer whose output the group exchanges: split, and not the last (l < G)."""
    return jnp.asarray(split).at[-1].set(0)


def work(
    layers: Layers,
    times: LayerTimes,
    placement: Placement,
    p2: Cells,
    algorithm: Algorithm,
    by: Literal["filter", "channel"],
) -> GroupWork:
    """Weights, their update and the compute divide by p2 in split layers; activations do not."""
    split = placement.split
    gathers = exchanged(split)
    gathered = gathers * layers.y
    if algorithm != "best":  # both costs are linear in the size, so the layers' sum is enough
        gathers, gathered = merged(gathers), merged(gathered)
    return replace(
        whole_work(layers, times),
        forward_backward=held(times.forward + times.backward, split, p2),
        update=held(times.update, split, p2),
        parameters=jnp.expand_dims(held(2 * layers.w, split, p2), 0) + merged(layers.bias),
        gradient=held(layers.w, split, p2),
        undivided=total(layers.w * (1 - split)),
        by_filter=jnp.asarray(float(by == "filter")),
        by_channel=jnp.asarray(float(by == "channel")),
        gathered=gathered,
        gathers=gathers,
    )
