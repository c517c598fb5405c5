"""What one PE of a group does for its replica: the layers reduced, once, to a handful of numbers.

Every strategy is a group strategy inside p2 PEs and data parallelism across p1 replicas (ParaDL,
Table III). Stage one reduces the layers to a `GroupWork`, which is small; stage two (`strategy.py`) is
closed-form in PEs, batch, latency and bandwidth. s_l = 1 where the group splits layer l, else 0.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Int, Num

from kernels.arrays import Cells, Factors, Flags, PerLayer, PerLayerPart, PerMessage, PerStage
from kernels.layers import Layers, LayerTimes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Placement:
    """How a group lays the layers out on its p2 PEs; discrete, decided before the kernels run.

    split: s_l. factors: parts along (depth, height, width), spatial only. ends: the layer after each
    pipeline stage's last one, pipeline only (stages that a cell does not have end at G, too).
    fits: p2 is within the strategy's limit. even: p2 divides what it splits. defined: such a
    placement exists at all.
    """

    split: PerLayer
    factors: Factors
    ends: Int[ArrayLike, "stage *#cells"]
    fits: Flags
    even: Flags
    defined: Flags


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GroupWork:
    """Work of the busiest PE of a group. Items are counted a sample, parameters once.

    forward_backward [s a sample], update [s an iteration]; activations and parameters: items in
    memory, by pipeline stage; gradient: weights that a PE exchanges with the other replicas;
    gathered, gathers: items and collectives of the layer-wise exchange; halo_items, halo_exchanges;
    split_items: output of the last split layer; stage_items: largest output that passes from stage
    to stage. replicated and pipelined are 1 or 0: each PE holds all weights; the group is a pipeline.
    """

    forward_backward: Cells
    update: Cells
    activations: PerStage
    parameters: PerStage
    gradient: Cells
    gathered: PerMessage
    gathers: PerMessage
    halo_items: Cells
    halo_exchanges: Cells
    split_items: Cells
    stage_items: Cells
    replicated: Cells
    pipelined: Cells


def total(values: PerLayer) -> Num[Array, "*cells"]:
    """Sum over the layers."""
    return jnp.sum(jnp.asarray(values), axis=0)


def share(split: PerLayer, p2: Cells) -> Num[Array, "layer *cells"]:
    """The part of a layer that one PE holds: s/p2 + 1 - s."""
    return jnp.asarray(split / p2 + (1 - split))


def shared_work(layers: Layers, times: LayerTimes, compute: PerLayerPart) -> GroupWork:
    """A group whose PEs each compute the part `compute` of every layer, and exchange nothing yet.

    With `compute` = 1 this is the group of one PE: serial, and each replica of data parallelism.
    """
    nothing = jnp.zeros(())
    return GroupWork(
        forward_backward=total((times.forward + times.backward) * compute),
        update=total(times.update),
        activations=total(2 * (layers.x + layers.y))[None],
        parameters=total(2 * layers.w + layers.bias)[None],
        gradient=total(layers.w),
        gathered=nothing[None],
        gathers=nothing[None],
        halo_items=nothing,
        halo_exchanges=nothing,
        split_items=nothing,
        stage_items=nothing,
        replicated=nothing,
        pipelined=nothing,
    )
