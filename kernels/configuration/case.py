"""A case: all that the oracle is asked at once, one configuration a cell.

Every numeric axis of a sweep is one dimension of the cells, and a value that does not vary along
an axis has size 1 there (`kernels.arrays`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import mul

import jax

from kernels.arrays import AnyArray, Cells
from kernels.configuration.convergence import Curve, Law, follow_curve, spread_epochs
from kernels.configuration.run import Run
from kernels.machine.network import Network
from kernels.machine.rings import Ring
from kernels.machine.software import Software
from kernels.names.parallelisms import KINDS, NESTING
from kernels.namespace import xp
from kernels.options import Options
from kernels.paper.work import TableWork
from kernels.work.compute import PE
from kernels.work.group import Bounds, GroupWork

# Here, and not where they stand: laws are read, and fitted, without JAX.
jax.tree_util.register_dataclass(Curve)
jax.tree_util.register_dataclass(Law)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Training:
    """Epochs by global batch. converges_to: B beyond which the target is never reached."""

    curve: Curve
    law: Law
    converges_to: Cells

    def count_epochs(self, global_batch: Cells) -> Cells:
        """Epochs to the target; NaN where it is never reached."""
        epochs = follow_curve(self.curve, xp.asarray(global_batch))
        return xp.where(xp.greater(global_batch, self.converges_to), xp.nan, epochs)

    def spread_epochs(self, global_batch: Cells) -> Cells:
        """Spread of the logarithm of the epochs."""
        spread: Cells = spread_epochs(self.law, xp.asarray(global_batch))
        return spread


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Uncertainty:
    """Draws, and spreads of logarithms.

    factors [draw, cells]: on each parameter. serial [draw, cells]: on a model's time on one PE.
    whole, group, reduce, exchange: errors of computing whole models, and divided ones; of the
    gradients' rings, and of all else that is communicated. widening: the factor on these errors.
    """

    factors: Software
    serial: AnyArray
    whole: Cells
    group: Cells
    reduce: Cells
    exchange: Cells
    widening: Cells


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
