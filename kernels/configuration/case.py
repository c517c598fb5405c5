"""A case: the complete input of the oracle, with one configuration per cell.

Each numeric axis of a sweep is a dimension of the cells; values that do not vary along an axis have
size 1 there (`kernels.arrays`).
"""

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property, reduce
from operator import mul

import jax

from paradl.kernels.arrays import STATIC, AnyArray, Cells, pytree, xp
from paradl.kernels.configuration.convergence import Curve, Law, follow_curve, spread_epochs
from paradl.kernels.configuration.run import Run
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.network import ClusteredRing, Network, Ring
from paradl.kernels.machine.software import Software
from paradl.kernels.names.parallelisms import KINDS, NESTING
from paradl.kernels.options import Options
from paradl.kernels.paper.inputs import TableWork
from paradl.kernels.work.block_work import BlockWork
from paradl.kernels.work.division import Division
from paradl.kernels.work.group import Bounds, GroupWork

Work = GroupWork | TableWork  # of a group's busiest PE

# Registered here because laws are read and fitted without JAX.
jax.tree_util.register_dataclass(Curve)
jax.tree_util.register_dataclass(Law)


@pytree
class EpochLaw:
    """Epochs by global batch. converges_to: largest B that reaches the target."""

    curve: Curve
    law: Law
    converges_to: Cells

    def count_epochs(self, global_batch: Cells) -> Cells:
        """Compute epochs to the target; NaN where it is never reached."""
        epochs = follow_curve(self.curve, xp.asarray(global_batch))
        return xp.where(xp.greater(global_batch, self.converges_to), xp.nan, epochs)

    def spread_epochs(self, global_batch: Cells) -> Cells:
        """Compute the spread of the logarithm of the epochs."""
        spread: Cells = spread_epochs(self.law, xp.asarray(global_batch))
        return spread


@pytree
class Uncertainty:
    """Draws of parameters, and spreads of logarithms of times.

    factors [draw, cells]: on each parameter. serial [draw, cells]: on a model's time on one PE.
    whole, group: errors of the compute time of whole and of divided models. reduce, exchange: of
    the gradients' rings and of all other communication. widening: factor on these errors.
    kernels [draw, cells]: factors on parameters of a PE. joint: one error of all terms together, of
    blocks, whose runs state totals; `beside`: that beside another layout of the same network.
    """

    factors: Software
    serial: AnyArray
    whole: Cells
    group: Cells
    reduce: Cells
    exchange: Cells
    widening: Cells
    kernels: Mapping[str, AnyArray] = field(default_factory=dict)
    joint: Cells | None = None
    beside: Cells | None = None


@pytree
class Case:
    """Work of the layers in a group, with the run, the machine and the formulas to use.

    uncertainty: None if no spread is requested. training: None without a law of epochs; with one,
    the best choice has the least time to the target. choices: counts that are optimised per cell
    ("group", "segments"); each adds a leading dimension of candidates, in this order.
    layer_slopes: d work / d log x by parameter and field, for requested elasticities.
    """

    work: Work | BlockWork
    bounds: Bounds
    run: Run
    network: Network
    pe: PE
    uncertainty: Uncertainty | None = None
    training: EpochLaw | None = None
    software: Software = field(default_factory=Software)
    options: Options = field(default_factory=Options, metadata=STATIC)
    choices: tuple[str, ...] = field(default=(), metadata=STATIC)
    layer_slopes: Mapping[str, Mapping[str, AnyArray]] = field(default_factory=dict)

    def find_ring(self, name: str) -> Ring:
        """Return the ring of a parallelism's PEs; its stride is the product of degrees inside."""
        degrees = self.run.degrees
        inside = [other for other in NESTING[NESTING.index(name) + 1 :] if other in degrees]
        stride = reduce(mul, (degrees[other] for other in inside), xp.ones(()))
        return Ring(degrees[name], stride, self.run.p)

    def find_alike(self) -> Ring | None:
        """Return the ring of a replica's PEs with the same weights; None if all differ."""
        names = (name for name in self.run.degrees if KINDS[name].splits == "rows")
        name = next(names, None)
        return None if name is None else self.find_ring(name)

    def find_replicas(self) -> Ring:
        """Return the ring of PEs with the same weights, over all replicas."""
        run, alike = self.run, self.find_alike()
        if alike is None:
            return Ring(run.replicas, run.group, run.p)
        # PEs that divide rows have all weights, so their gradients are summed over, too.
        degree, others = run.replicas * alike.degree, run.group / alike.degree
        if len(run.degrees) == 1:
            return Ring(degree, others, run.p)
        # Inside other parallelisms, a replica's PEs are a cluster, apart from those of the next.
        several = xp.greater(run.replicas, 1)
        return ClusteredRing(
            degree,
            alike.stride,
            run.p,
            xp.where(several, run.p, alike.span),
            near=alike.degree,
            clusters=others / alike.stride,
            several=several,
            thinned=xp.ones(()),
        )

    def find_shards(self) -> Ring:
        """Return the ring of PEs among which ZeRO divides the states of a weight."""
        ring, shards = self.find_replicas(), self.run.shards
        return ring if shards is None else replace(ring, degree=shards)

    def find_copies(self) -> Ring | None:
        """Return the ring of PEs with the same shard, one in each group of HSDP; None without."""
        ring, shards = self.find_replicas(), self.run.shards
        if shards is None:
            return None
        return replace(ring, degree=ring.degree / shards, stride=ring.stride * shards)

    @property
    def of_blocks(self) -> bool:
        """True if layouts divide blocks, false if groups of PEs divide layers."""
        return isinstance(self.work, BlockWork)

    @property
    def in_numpy(self) -> bool:
        """True if only numpy computes the answers, however many cells there are."""
        return self.of_blocks

    @property
    def block_work(self) -> BlockWork:
        """The work of a case of blocks, where a `micro` of 0 leaves micro-batches open."""
        assert isinstance(self.work, BlockWork)
        return self.work

    @cached_property  # once, so that rules are checked once
    def blocks(self) -> BlockWork:
        """The same with the batch and the micro-batches of each cell."""
        run = self.run
        return self.block_work.settle(run.global_batch, run.accumulate, run.segments)

    @cached_property
    def whole_blocks(self) -> BlockWork:
        """The same with whole batches and micro-batches, for rules that divide them."""
        run, batch = self.run, xp.rint(self.run.global_batch)
        return self.block_work.settle(batch, run.accumulate, run.segments, whole=True)

    @property
    def layer_work(self) -> Work:
        """The work of a case that is answered layer by layer."""
        assert not isinstance(self.work, BlockWork)
        return self.work

    @property
    def machine_work(self) -> GroupWork:
        """The same of the machine oracle."""
        assert isinstance(self.work, GroupWork)
        return self.work


@pytree
class Points:
    """Cases in one dimension: rows of a table, or points taken from one.

    division: the layers in their groups, to be summed anew for each point; None if the case's work
    holds for all points.
    """

    case: Case
    division: Division | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the points' dimensions, without leading ones of choices."""
        return tuple(xp.shape(self.case.run.p)[len(self.case.choices) :])
