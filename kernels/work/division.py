"""A division: how the layers of a model are laid out on the PEs of a group, and on which PEs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import jax

from kernels.arrays import Cells
from kernels.options import Options
from kernels.work.compute import PE
from kernels.work.group import Placement
from kernels.work.layers import Layers


@partial(
    jax.tree_util.register_dataclass,
    data_fields=(
        "layers",
        "pe",
        "placement",
        "p2",
        "degrees",
        "delta",
        "segments",
        "state_bytes",
        "weight_bytes",
    ),
    # They choose formulas, and so are fixed when a program is compiled.
    meta_fields=("group", "options"),
)
@dataclass(frozen=True)
class Division:
    """Layers placed on groups of `p2` PEs [cells], `delta` bytes an item.

    group: the parallelisms inside a replica, joined by "+"; "none" where the network stays whole.
    degrees: of several, into how many parts each of them divides it, by name. segments: of a
    pipeline. state_bytes: a weight's, with its gradient and the optimizer's states. weight_bytes:
    of these, what rows of a table take that are not touched. Table III's memory needs none of the
    three.
    """

    layers: Layers
    pe: PE
    placement: Placement
    p2: Cells
    delta: Cells
    group: str
    options: Options = field(default_factory=Options)
    segments: Cells = 1.0
    state_bytes: Cells = 0.0
    weight_bytes: Cells = 0.0
    degrees: Mapping[str, Cells] = field(default_factory=dict)

    def find_degree(self, name: str) -> Cells:
        """Into how many parts a parallelism divides the network."""
        return self.degrees.get(name, self.p2)
