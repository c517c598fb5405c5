"""Groups: the placement of layers, and the work of the busiest PE.

Every strategy is a group strategy inside p2 PEs and data parallelism across p1 replicas (ParaDL,
Table III). Stage one sums the layers to numbers of few dimensions; stage two is closed-form in PEs,
batch, latency and bandwidth. s_l = 1 if the group splits layer l, else 0.
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
    empty_last,
    xp,
)
from kernels.work.touched import RowStates, Touched


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bounds:
    """Limits on the number of PEs of a group.

    fits: it is within the strategy's limit. even: it divides what the strategy splits. defined:
    such a placement exists.
    """

    fits: Flags
    even: Flags
    defined: Flags


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Placed:
    """Which PE of a placed group runs which layer, and the critical path through a step.

    runs: 1 where a PE runs a layer, else 0. segments: S, of a step. forward, backward: share of
    the segments whose pass of a layer is on the critical path. messages, items: start-ups on it
    and items per sample, weighted by how much slower their link is than the node's. received:
    items per sample that a PE receives, forward.
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

    split: s_l. splits: s_l by parallelism, if several split layers. factors: parts along (depth,
    height, width), for spatial. ends: index after each stage's last layer, for pipeline (stages
    that a cell lacks end at G, too). placed: for placements of operators.
    """

    split: PerLayer
    factors: Factors
    ends: Ends
    placed: Placed | None = None
    splits: Mapping[str, PerLayer] = field(default_factory=dict)
    crossing: PerLayer | None = None

    def find_split(self, name: str) -> PerLayer:
        """Return s_l of a parallelism."""
        return self.splits.get(name, self.split)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GroupWork:
    """Work of the busiest PE of a group.

    forward_backward [s per sample], update [s per iteration], fixed [s per pass], launches [per
    pass]. activations [B per sample], parameters [B]: by stage; the fullest counts. gradient:
    weights that a PE exchanges with other replicas. tensors: layers with such weights. sent: what
    PEs of a group send each other, by parallelism (`kernels.parallelism`).
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
    touched: Touched | None = None  # with sparse gradients
    row_states: RowStates | None = None  # with sparse gradients
    gathered_weights: Cells | None = None  # [B] of weights, if replicas divide them


def total(values: PerLayer) -> Cells:
    """Sum over the layers."""
    return xp.sum(xp.asarray(values), axis=0)


def merged(values: PerLayer) -> Single:
    """Sum over the layers as a single message or stage [1, cells]."""
    return xp.sum(xp.asarray(values), axis=0, keepdims=True)


def count_pes(degrees: Mapping[str, Cells]) -> Cells:
    """Count the PEs of a group: the product of the degrees inside a replica."""
    return reduce(mul, degrees.values())


def share(split: PerLayer, degree: Cells) -> PerLayer:
    """Return the share of a layer that one of q PEs holds, s/q + 1 - s."""
    return xp.asarray(split / degree + (1 - split))


def held(values: PerLayer, split: PerLayer, degree: Cells) -> Cells:
    """Sum what one of q PEs holds of all layers, values (s/q + 1 - s).

    Written so that layers are summed once for all q, and that q = 1 gives exactly the total.
    """
    return total(values) - (1 - 1 / degree) * total(values * split)


def find_fullest(activations: PerStage, parameters: PerStage, batch: Cells) -> Cells:
    """Compute the memory of the fullest stage with `batch` samples per replica."""
    # Few stages: only those that are fullest for some batch (`grids.inputs.stages`).
    stages = zip(*xp.broadcast_arrays(activations, parameters), strict=True)
    # Stage by stage, which compiles to faster code than a maximum along a dimension.
    most = reduce(xp.maximum, (batch * activation + once for activation, once in stages))
    return xp.asarray(most)


def mark_exchanged(split: PerLayer) -> PerLayer:
    """Return 1 for layers whose output a filter or channel group exchanges: split, and l < G."""
    return empty_last(split)


def slower(work: GroupWork, factor: Cells) -> GroupWork:
    """Return the work if layers take `factor` times as long on the device."""
    return replace(
        work,
        # The update is unchanged: measurements are of FW + BW.
        forward_backward=work.forward_backward * factor,
        fixed=work.fixed * factor,
    )
