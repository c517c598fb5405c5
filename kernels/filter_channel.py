"""Filter and channel parallelism: a layer's filters (channels) divided among the PEs of a group.

ParaDL, Table III, rows Filter and Channel. Filter gathers y_l forward and reduces dL/dx_l backward;
channel reduces y_l forward and gathers dL/dx_l backward: the same two collectives in another order.
The last layer's output is not exchanged.
"""

from dataclasses import replace
from typing import Literal

import jax.numpy as jnp

from kernels.arrays import PerLayer
from kernels.division import Division, add_own
from kernels.group import GroupWork, held, merged, total, whole_work
from kernels.layers import LayerTimes


def exchanged(split: PerLayer) -> PerLayer:
    """1 for each layer whose output the group exchanges: split, and not the last (l < G)."""
    return jnp.asarray(split).at[-1].set(0)


def work(division: Division, times: LayerTimes, by: Literal["filter", "channel"]) -> GroupWork:
    """Weights, their update and the compute divide by p2 in split layers; activations do not."""
    layers, split, p2 = division.layers, division.placement.split, division.p2
    gathers = exchanged(split)
    gathered = gathers * layers.y
    if (
        division.options.algorithm != "best"
    ):  # costs are linear in the size: the layers' sum is enough
        gathers, gathered = merged(gathers), merged(gathered)
    return replace(
        whole_work(layers, times),
        # Activations stay those of one PE: what is gathered, each PE holds in full.
        forward_backward=add_own(times.forward + times.backward, division),
        update=add_own(times.update, division),
        # Table III divides weights and not biases, of which each PE holds all.
        parameters=jnp.expand_dims(held(2 * layers.w, split, p2), 0) + merged(layers.bias),
        gradient=held(layers.w, split, p2),
        undivided=total(layers.w * (1 - split)),
        by_filter=jnp.asarray(float(by == "filter")),
        by_channel=jnp.asarray(float(by == "channel")),
        gathered=gathered,
        gathers=gathers,
    )
