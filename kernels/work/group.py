"""Groups: where layers go, and what the layers, reduced once, make its busiest PE do.

Every strategy is a group strategy inside p2 PEs and data parallelism across p1 replicas (ParaDL,
Table III). Stage one reduces the layers to numbers of few dimensions; stage two is closed-form in
PEs, batch, latency and bandwidth. s_l = 1 where the group splits layer l, else 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import mul
from typing import Any

import jax

from kernels.arrays import (
    Cells,
    Ends,
    Factors,
    Flags,
    OfDevice,
    PerDevice,
    PerLayer,
    PerStage,
    Single,
)
from kernels.namespace import empty_last, xp
from kernels.work.touched import RowStates, Touched


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bounds:
    """True if a group of so many PEs can be.

    fits: they are within the strategy's limit. even: they divide what it splits. defined: such a
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
    """How a group lays the layers out on its PEs; discrete, decided before the kernels run.

    split: s_l; splits: the same of each parallelism by name, where several split layers. factors:
    parts along (depth, height, width), spatial only. ends: the layer after each pipeline stage's
    last one, pipeline only (stages that a cell does not have end at G, too). placed: of a placed
    group alone.
    """

    split: PerLayer
    factors: Factors
    ends: Ends
    placed: Placed | None = None
    splits: Mapping[str, PerLayer] = field(default_factory=dict)
    crossing: PerLayer | None = None

    def find_split(self, name: str) -> PerLayer:
        """s_l of a parallelism."""
        return self.splits.get(name, self.split)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GroupWork:
    """Work of the busiest PE of a group. Items are counted a sample, parameters once.

    forward_backward [s a sample], update [s an iteration], fixed [s a pass], launches [1 a pass];
    activations [B a sample], parameters [B]: what each stage holds, of which the fullest counts;
    gradient: weights that a PE exchanges with the other replicas; tensors: layers that have some.
    sent: what the PEs of a group send each other, by parallelism (`kernels.parallelism`).
    """

    forward_backward: Cells
    update: Cells
    fixed: Cells
    launches: Cells
    activations: PerStage
    parameters: PerStage
    gradient: Cells
    tensors: Cells
    sent: Mapping[str, Any]
    touched: Touched | None = None  # where gradients have touched rows alone
    row_states: RowStates | None = None  # likewise, of optimizers
    gathered_weights: Cells | None = None  # [B] of weights, where replicas divide them


def total(values: PerLayer) -> Cells:
    """Sum over the layers."""
    return xp.sum(xp.asarray(values), axis=0)


def merged(values: PerLayer) -> Single:
    """Sum over the layers, as the one message, or the one stage, that they make together."""
    return xp.sum(xp.asarray(values), axis=0, keepdims=True)


def count_pes(degrees: Mapping[str, Cells]) -> Cells:
    """PEs of a group: the product of the degrees of what divides a replica."""
    return reduce(mul, degrees.values())


def share(split: PerLayer, degree: Cells) -> PerLayer:
    """The part of a layer that one of q PEs holds: s/q + 1 - s."""
    return xp.asarray(split / degree + (1 - split))


def held(values: PerLayer, split: PerLayer, degree: Cells) -> Cells:
    """Sum over the layers of what one of q PEs holds, values (s/q + 1 - s).

    Written so that the layers are summed once, whatever q, and that for q = 1 it is exactly all.
    """
    return total(values) - (1 - 1 / degree) * total(values * split)


def find_fullest(activations: PerStage, parameters: PerStage, batch: Cells) -> Cells:
    """Memory of the fullest stage, with `batch` samples per replica."""
    # Few: those that are the fullest for some batch or other (`grids.inputs.stages`).
    stages = zip(*xp.broadcast_arrays(activations, parameters), strict=True)
    # Stage after stage, which compiles to faster code than a maximum along a dimension.
    most = reduce(xp.maximum, (batch * activation + once for activation, once in stages))
    return xp.asarray(most)


def mark_exchanged(split: PerLayer) -> PerLayer:
    """1 for each layer whose output a filter or channel group exchanges: split, and l < G."""
    return empty_last(split)


def slower(work: GroupWork, factor: Cells) -> GroupWork:
    """The same layers, each taking `factor` times as long on the device."""
    return replace(
        work,
        # The update stays as it is: what was measured is FW + BW.
        forward_backward=work.forward_backward * factor,
        fixed=work.fixed * factor,
    )
