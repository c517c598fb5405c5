"""A division: how the layers of a model are laid out on the PEs of a group, and on which PEs."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax

from kernels.arrays import Cells
from kernels.collectives import Algorithm
from kernels.compute import PE, Optimizer
from kernels.group import Placement
from kernels.layers import Layers

GroupStrategy = Literal["none", "spatial", "pipeline", "filter", "channel"]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("layers", "pe", "placement", "p2", "delta"),
    # They choose formulas, and so are fixed when a program is compiled.
    meta_fields=("group", "optimizer", "algorithm"),
)
@dataclass(frozen=True)
class Division:
    """Layers placed on groups of `p2` PEs [cells], `delta` bytes an item.

    algorithm: of collectives; of the faster of two, each layer's message counts by itself.
    """

    layers: Layers
    pe: PE
    placement: Placement
    p2: Cells
    delta: Cells
    group: GroupStrategy
    optimizer: Optimizer = "sgd"
    algorithm: Algorithm = "ring"
