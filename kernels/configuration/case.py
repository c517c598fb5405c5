"""A case: all that the oracle is asked at once, one configuration a cell.

Every numeric axis of a sweep is one dimension of the cells, and a value that does not vary along
an axis has size 1 there (`kernels.arrays`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import mul

import jax

from kernels.arrays import AnyArray
from kernels.configuration.run import Run
from kernels.configuration.training import Training
from kernels.machine.draws import Uncertainty
from kernels.machine.network import Network
from kernels.machine.rings import Ring
from kernels.machine.software import Software
from kernels.names.parallelisms import KINDS, NESTING
from kernels.namespace import xp
from kernels.options import Options
from kernels.paper.work import TableWork
from kernels.work.compute import PE
from kernels.work.group import Bounds, GroupWork


@partial(
    jax.tree_util.register_dataclass,
    # A part that is None is no array at all: with and without it are two compiled programs.
    data_fields=(
        *("work", "bounds", "run", "network", "pe", "software"),
        *("uncertainty", "training", "layer_slopes"),
    ),
    # They choose formulas, and so are fixed when a program is compiled.
    meta_fields=("options", "choices"),
)
@dataclass(frozen=True)
class Case:
    """The layers' work in a group, and the run, machine and formulas that it is asked about.

    uncertainty: None where no spread is asked for. training: None where no law of epochs is known;
    with one, the best choice is that of the least time to the target.
    choices: what is left to each cell, the best counts ("group", "segments"): so many dimensions,
    of group sizes and of segments, lead those of the cells, in this order.
    layer_slopes: d work / d log x, by parameter and field, of those that elasticities are asked in.
    """

    work: GroupWork | TableWork
    bounds: Bounds
    run: Run
    network: Network
    pe: PE
    uncertainty: Uncertainty | None = None
    training: Training | None = None
    software: Software = field(default_factory=Software)
    options: Options = field(default_factory=Options)
    choices: tuple[str, ...] = ()
    layer_slopes: Mapping[str, Mapping[str, AnyArray]] = field(default_factory=dict)

    def find_ring(self, name: str) -> Ring:
        """The PEs of a parallelism, by what it sends: neighbours lie apart what is divided inside
        them.
        """
        degrees = self.run.degrees
        inside = [other for other in NESTING[NESTING.index(name) + 1 :] if other in degrees]
        stride = reduce(mul, (degrees[other] for other in inside), xp.ones(()))
        return Ring(degrees[name], stride, self.run.p)

    def find_alike(self) -> Ring | None:
        """PEs of a replica that hold the same weights; None where no two of them can."""
        names = (name for name in self.run.degrees if KINDS[name].splits == "rows")
        name = next(names, None)
        return None if name is None else self.find_ring(name)

    @property
    def machine_work(self) -> GroupWork:
        """The work, of a case of the machine oracle."""
        assert isinstance(self.work, GroupWork)
        return self.work
