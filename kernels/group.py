"""What one PE of a group does for its replica: the layers reduced, once, to a handful of numbers.

Every strategy is a group strategy inside p2 PEs and data parallelism across p1 replicas (ParaDL,
Table III). Stage one reduces the layers to a `GroupWork`, which is small; stage two (`strategy.py`)
is closed-form in PEs, batch, latency and bandwidth. s_l = 1 where the group splits layer l, else 0.
"""

from dataclasses import dataclass, replace
from functools import reduce

import jax

from kernels.arrays import (
    Cells,
    Ends,
    Factors,
    Flags,
    OfDevice,
    PerDevice,
    PerLayer,
    PerMessage,
    PerStage,
    Single,
)
from kernels.layers import Layers, LayerTimes
from kernels.namespace import xp
from kernels.touched import RowStates, Touched, count_touched


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bounds:
    """Whether a group of p2 PEs can be.

    fits: p2 is within the strategy's limit. even: p2 divides what it splits. defined: such a
    placement exists at all.
    """

    fits: Flags
    even: Flags
    defined: Flags


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Placed:
    """Which PE of a placed group runs which layer, and the longest way through a step.

    runs: 1 where a PE runs a layer, else 0. segments: S, into which a step is cut. forward,
    backward: the part of the segments whose forward (backward) pass of a layer is on the critical
    path. messages, items: start-ups that lie on it, and items a sample that pass there, each as
    often as its link is slower than the node's. received: items a sample that come to a PE from
    others, forward.
    """

    runs: PerDevice
    forward: PerLayer
    backward: PerLayer
    messages: Cells
    items: Cells
    received: OfDevice
    segments: Cells = 1.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Placement:
    """How a group lays the layers out on its p2 PEs; discrete, decided before the kernels run.

    split: s_l. factors: parts along (depth, height, width), spatial only. ends: the layer after
    each pipeline stage's last one, pipeline only (stages that a cell does not have end at G, too).
    placed: of a placed group alone.
    """

    split: PerLayer
    factors: Factors
    ends: Ends
    placed: Placed | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GroupWork:
    """Work of the busiest PE of a group. Items are counted a sample, parameters once.

    forward_backward [s a sample], update [s an iteration], fixed [s a pass], launches [1 a pass];
    activations,
    parameters: what is in memory, of which the fullest stage counts, in items with their gradients
    (Table III) or in bytes (`kernels.memory`); gradient: weights that a PE exchanges
    with the other replicas; gathered, gathers: items and collectives of the layer-wise exchange;
    halo_items, halo_exchanges; split_items: output of the last split layer; stage_items: largest
    output that passes from stage to stage; path_messages, path_items: what passes on a placed
    group's critical path. Marks, 1 or 0: replicated, each PE of a group of several
    holds all weights; segmented, samples pass in segments; pipelined; by_filter, by_channel.

    Of the whole network, whatever the group: sample, items of one; undivided, weights that every
    PE of a group holds.
    tensors: layers whose weights a PE exchanges; halo_stride: how far apart neighbours are along
    the outermost dimension that a spatial group divides; logged: convolutions that a filter or
    spatial group divides and exchanges, at each of which ChainerMNX opens its log files.
    """

    forward_backward: Cells
    update: Cells
    fixed: Cells
    launches: Cells
    activations: PerStage
    parameters: PerStage
    gradient: Cells
    gathered: PerMessage
    gathers: PerMessage
    halo_items: Cells
    halo_exchanges: Cells
    split_items: Cells
    stage_items: Cells
    path_messages: Cells
    path_items: Cells
    # Numbers and not static: strategies share compiled programs.
    replicated: Cells
    segmented: Cells
    pipelined: Cells
    by_filter: Cells
    by_channel: Cells
    sample: Cells
    undivided: Cells
    tensors: Cells
    halo_stride: Cells
    logged: Cells
    touched: Touched | None = None  # where gradients have touched rows alone
    row_states: RowStates | None = None  # in memory, likewise


def total(values: PerLayer) -> Cells:
    """Sum over the layers."""
    return xp.sum(xp.asarray(values), axis=0)


def merged(values: PerLayer) -> Single:
    """Sum over the layers, as the one message, or the one stage, that they make together."""
    return xp.sum(xp.asarray(values), axis=0, keepdims=True)


def share(split: PerLayer, p2: Cells) -> PerLayer:
    """The part of a layer that one PE holds: s/p2 + 1 - s."""
    return xp.asarray(split / p2 + (1 - split))


def held(values: PerLayer, split: PerLayer, p2: Cells) -> Cells:
    """Sum over the layers of what one PE of p2 holds, values (s/p2 + 1 - s).

    Written so that the layers are summed once, whatever p2, and that for p2 = 1 it is exactly all.
    """
    return total(values) - (1 - 1 / p2) * total(values * split)


def find_fullest(activations: PerStage, parameters: PerStage, batch: Cells) -> Cells:
    """What the fullest stage holds, `batch` samples a replica."""
    # Few: those that are the fullest for some batch or other (`grids.inputs.stages`).
    stages = zip(*xp.broadcast_arrays(activations, parameters), strict=True)
    # Stage after stage, which compiles to faster code than a maximum along a dimension.
    most = reduce(xp.maximum, (batch * activation + once for activation, once in stages))
    return xp.asarray(most)


def whole_work(layers: Layers, times: LayerTimes) -> GroupWork:
    """The group of one PE: serial, and each replica of data parallelism."""
    # A message of nothing, not none: fields have the same ranks in every group.
    nothing, no_message = xp.zeros(()), xp.zeros((1,) * xp.ndim(layers.x))
    seconds = times.forward + times.backward
    return GroupWork(
        forward_backward=total(seconds),
        update=total(times.update),
        fixed=total(times.fixed),
        launches=total(times.launches),
        # Each with its gradient. A tensor counts as an output and as the next layer's input: four
        # times in all, the paper's bound with no buffer reused.
        activations=merged(2 * (layers.x + layers.y)),
        # Biases once: Table III has no gradient of theirs in memory, nor in the exchange below.
        parameters=merged(2 * layers.w + layers.bias),
        gradient=total(layers.w),
        gathered=no_message,
        gathers=no_message,
        halo_items=nothing,
        halo_exchanges=nothing,
        split_items=nothing,
        stage_items=nothing,
        path_messages=nothing,
        path_items=nothing,
        replicated=nothing,
        segmented=nothing,
        pipelined=nothing,
        by_filter=nothing,
        by_channel=nothing,
        # A sample is what the first layer takes in.
        sample=xp.asarray(layers.x)[0],
        undivided=total(layers.w),
        tensors=total(xp.where(layers.w > 0, 1.0, 0.0)),
        halo_stride=xp.ones(()),
        logged=nothing,
        touched=count_touched(layers, layers.w, merged),
    )


def slower(work: GroupWork, factor: Cells) -> GroupWork:
    """The same layers, each taking `factor` times as long on the device."""
    return replace(
        work,
        # The update stays as it is: what was measured is FW + BW.
        forward_backward=work.forward_backward * factor,
        fixed=work.fixed * factor,
    )
