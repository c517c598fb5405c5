"""A division: how the layers of a model are laid out on the PEs of a group."""

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
    # These choose formulas, and so are fixed when a program is compiled.
    meta_fields=("parallelisms", "options"),
)
@dataclass(frozen=True)
class Division:
    """Layers placed on the PEs of groups; items have `delta` bytes.

    degrees: by the parallelism that divides a replica [cells]. parallelisms: their names; none if
    the network stays whole. segments: of a pipeline. state_bytes: per weight, with gradient and
    optimizer states. weight_bytes: per weight of untouched rows of a table. Table III's memory
    uses none of the last three.
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
