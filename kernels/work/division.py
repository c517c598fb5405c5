"""A division: how the layers of a model are laid out on the PEs of a group, and on which PEs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import jax

from kernels.arrays import Cells
from kernels.options import Options
from kernels.work.compute import PE
from kernels.work.group import Placement, count_pes
from kernels.work.layers import Layers


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
    # They choose formulas, and so are fixed when a program is compiled.
    meta_fields=("parallelisms", "options"),
)
@dataclass(frozen=True)
class Division:
    """Layers placed on the PEs of groups, `delta` bytes an item.

    degrees: into how many parts each parallelism divides a replica [cells], by what it sends.
    parallelisms: their names; none where the network stays whole. segments: of a pipeline.
    state_bytes: a weight's, with its gradient and the optimizer's states. weight_bytes: of these,
    what rows of a table take that are not touched. Table III's memory needs none of the three.
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
        """p2: PEs of a group."""
        return count_pes(self.degrees)
