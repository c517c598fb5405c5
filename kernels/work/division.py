"""A division: the layers of a model, and their placement on the PEs of a group."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import jax

from paradl.kernels.arrays import (
    Cells,
    Ends,
    Factors,
    OfDevice,
    PerDevice,
    PerLayer,
)
from paradl.kernels.machine.device import PE, count_pes
from paradl.kernels.options import Options
from paradl.kernels.work.layers import Layers


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


@partial(
    jax.tree_util.register_dataclass,
    data_fields=(
        "layers",
        "pe",
        "placement",
        "degrees",
        "delta",
        "segments",
        "state_bytes",
        "weight_bytes",
    ),
    # These choose formulas, and so are fixed when a program is compiled.
    meta_fields=("parallelisms", "options"),
)
@dataclass(frozen=True)
class Division:
    """Layers placed on the PEs of groups; items have `delta` bytes.

    degrees: by the parallelism that divides a replica [cells]. parallelisms: their names; none if
    the network stays whole. segments: of a pipeline. state_bytes: per weight, with gradient and
    optimizer states. weight_bytes: per weight of untouched rows of a table.
    """

    layers: Layers
    pe: PE
    placement: Placement
    degrees: Mapping[str, Cells]
    delta: Cells
    parallelisms: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    segments: Cells = 1.0
    state_bytes: Cells = 0.0
    weight_bytes: Cells = 0.0

    @property
    def group(self) -> Cells:
        """p2, the PEs of a group."""
        return count_pes(self.degrees)
