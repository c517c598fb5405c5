"""A division: the layers of a model, and their placement on the PEs of a group."""

from collections.abc import Mapping
from dataclasses import field

from paradl.kernels.arrays import (
    STATIC,
    Cells,
    Ends,
    Factors,
    OfDevice,
    PerDevice,
    PerLayer,
    pytree,
)
from paradl.kernels.machine.device import PE, count_pes
from paradl.kernels.options import Options
from paradl.kernels.work.layers import Layers


@pytree
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


@pytree
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


@pytree
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
    parallelisms: tuple[str, ...] = field(default=(), metadata=STATIC)
    options: Options = field(default_factory=Options, metadata=STATIC)
    segments: Cells = 1.0
    state_bytes: Cells = 0.0
    weight_bytes: Cells = 0.0

    @property
    def group(self) -> Cells:
        """p2, the PEs of a group."""
        return count_pes(self.degrees)
