"""The abstract parallelism: how it divides layers, and what its PEs send.

Stage one sums the layers once to a `GroupWork`; stage two is closed-form in PEs, batch, latency and
bandwidth. A parallelism of degree 1 divides nothing and sends nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from paradl.kernels.arrays import Cells, PerLayer, PerStage, merged, total, xp
from paradl.kernels.columns import Column
from paradl.kernels.configuration.case import Case
from paradl.kernels.machine.network import Network, Ring
from paradl.kernels.machine.speeds import Fabric
from paradl.kernels.names.parallelisms import KINDS, Divided
from paradl.kernels.parallelism.divided_blocks import (
    Computing,
    DividedBlocks,
    Exchanged,
    Marks,
    Repeats,
    Rules,
    Values,
)
from paradl.kernels.work.division import Division
from paradl.kernels.work.layers import Layers, LayerTimes
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.memory import Holding, LayerShares, hold_whole
from paradl.kernels.work.schedules import Stage
from paradl.kernels.work.transformer import Block, Held, Training, Transformer

# Sums values of the layers that one PE runs; of several stages the largest sum.
Add: TypeAlias = Callable[[PerLayer], Cells]


@dataclass(frozen=True)
class Exchange:
    """An exchange of a pass, in seconds of a term.

    hideable: seconds that may overlap with computing; None if none. share: share of the compute
    time that can hide them. before: whether time used to hide it is lost to later exchanges. whole:
    whether it happens once per pass, whatever the steps. steps: how often it happens per pass.
    cuts: number of parts into which samples are cut.
    """

    term: str
    seconds: Cells
    hideable: Cells | None = None
    share: Cells = 0.0
    before: bool = False
    whole: bool = False
    steps: Cells = 1.0
    cuts: Cells = 1.0


Exchanges: TypeAlias = tuple[Exchange, ...]


class Parallelism:
    """A way of dividing a network; subclasses override what is particular to them.

    sends_as: the parallelism whose exchanges it uses, itself or one with which it then shares
    compiled programs. feeds_all: whether every node needs all samples of a replica. The argument
    `sent` of methods is what `reduce_sent` returns: what PEs send, as numbers for stage two.
    Of layouts of blocks: values of its columns that a search tries, given the PEs and the largest
    batch; repeats: masks of duplicates, by the column that has nothing to divide; marks: masks of
    layouts that run but are odd, given the PEs per node.
    """

    name: ClassVar[str]
    sends_as: ClassVar[str]
    feeds_all: ClassVar[bool] = False
    values: ClassVar[Values] = {}
    repeats: ClassVar[Repeats] = {}
    marks: ClassVar[Marks] = {}

    @property
    def divides(self) -> Divided | None:
        """The part of a layer that it divides; None if the network stays whole."""
        return KINDS[self.name].divides if self.name in KINDS else None

    @property
    def segmented(self) -> bool:
        """True if PEs run different layers, through which samples pass in segments."""
        return self.name in KINDS and KINDS[self.name].segmented

    def take_part(self, division: Division) -> Layers:
        """Return the busiest PE's share of the layers."""
        return division.layers

    def share_rows(self, division: Division) -> tuple[PerLayer | float, PerLayer | float]:
        """Return the shares of each layer's input and output that the fullest PE holds."""
        return 1.0, 1.0

    def share_planes(self, division: Division) -> tuple[PerLayer, PerLayer] | None:
        """Return a PE's shares of channels of x, and of filters of dL/dy; None for all."""
        return None

    def sum_layers(self, values: PerLayer, division: Division) -> PerStage:
        """Sum values of the layers that each PE runs [stage, cells]; by default all layers."""
        return merged(values)

    def time_layers(self, times: LayerTimes, division: Division) -> tuple[Cells, Cells, Cells]:
        """Return forward and backward [s per sample], fixed time [s per pass], launches."""
        return total(times.forward + times.backward), total(times.fixed), total(times.launches)

    def hold(self, division: Division, shares: LayerShares) -> Holding:
        """Compute the memory of a group's PEs."""
        return hold_whole(division, shares)

    def hold_segments(self, division: Division, shares: LayerShares, holding: Holding) -> PerStage:
        """Return bytes per sample of each PE's activations, with segments if there are any."""
        return holding.peak

    def reduce_sent(self, division: Division, shares: Layers, add: Add) -> Any:
        """Sum what PEs of a group exchange, for stage two.

        division: layers as divided by the parallelisms outside of this one. shares: layers as a PE
        finally computes them.
        """
        raise NotImplementedError

    def count_items(self, division: Division) -> Mapping[str, PerLayer]:
        """Count items per sample that a PE sends at each layer, by column of an explanation."""
        return {}

    def find_degree(self, case: Case) -> Cells:
        """Return its degree, the number of parts."""
        # Two that share compiled programs share the field of their degree, too.
        return case.run.degrees[self.sends_as]

    def count_steps(self, case: Case) -> Cells:
        """Count the sequential steps of a pass in which a PE computes."""
        return 1.0

    def cut_steps(self, case: Case) -> Cells:
        """Return the number of parts into which the samples of a pass are cut."""
        return 1.0

    def find_paths(self, sent: Any, case: Case, fabric: Fabric) -> Any:
        """Compute costs of its exchanges that do not depend on bytes, once, before the cells."""
        return None

    def list_exchanges(self, sent: Any, case: Case, paths: Any, batch: Cells) -> Exchanges:
        """List exchanges between PEs of a group in a pass, or a step, of `batch` samples."""
        return ()

    def time_step(self, sent: Any, case: Case, batch: Cells) -> Mapping[str, Cells]:
        """Compute additional seconds of a step of `batch` samples, by compute term."""
        return {}

    def time_once(self, sent: Any, case: Case) -> Mapping[str, Cells]:
        """Compute additional seconds of all steps together, by compute term."""
        return {}

    def reduce_through_hosts(
        self, sent: Any, case: Case, network: Network, replicas: Ring
    ) -> Cells:
        """Compute seconds in which gradients pass through host memory.

        replicas: ring of PEs with the same weights.
        """
        return xp.zeros(())

    @staticmethod
    def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
        """Return the rules that forbid layouts of blocks, by name."""
        return {}

    def cost_exchanges(self, divided: DividedBlocks) -> Any:
        """Compute costs of its exchanges that all blocks and stages share, once."""
        return None

    def exchange_block(
        self, divided: DividedBlocks, costs: Any, block: Block, hiding: Computing | None
    ) -> Exchanged:
        """Compute exposed communication of a block [s per micro-batch], forward and backward.

        costs: those of `cost_exchanges`. hiding: seconds of each of its attentions, which can hide
        it; None to hide nothing.
        """
        return {}

    def exchange_iteration(
        self,
        divided: DividedBlocks,
        costs: Any,
        stage: Stage,
        held: Held,
        passes: Column | None,
    ) -> Exchanged:
        """Compute exposed communication [s per iteration] beyond that of blocks.

        costs: those of `cost_exchanges`. held: parameters on a PE. passes: forward and backward
        seconds of a micro-batch, which can hide it; None to hide nothing.
        """
        return {}


def open_logs(convolutions: Cells, case: Case, degree: Cells) -> Exchange:
    """Compute 2 L_c p tau: every PE opens log files, one after another in one folder.

    This happens twice per pass at each of the L_c convolutions that a group of several PEs
    exchanges (ChainerMNX, as ParaDL's authors ran it).
    """
    # A group of one PE exchanges nothing, and opens none.
    layers = xp.where(xp.greater(degree, 1), 2 * convolutions, 0.0)
    return Exchange("log_files", layers * case.run.p * case.software.log_open)
