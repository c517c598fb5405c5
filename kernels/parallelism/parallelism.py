"""Parallelism: what a way of dividing a network makes of each layer, and what its PEs then send.

Stage one reduces the layers, once, to a `GroupWork`; stage two is closed-form in PEs, batch,
latency and bandwidth. A parallelism of degree 1 divides nothing and sends nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from kernels.arrays import Cells, PerLayer, PerStage
from kernels.configuration.case import Case
from kernels.machine.network import Network
from kernels.machine.rings import Ring
from kernels.names.parallelisms import KINDS, Divided
from kernels.namespace import xp
from kernels.work.division import Division
from kernels.work.group import merged, total
from kernels.work.layers import Layers, LayerTimes
from kernels.work.memory import Holding, Own, hold_whole

# Sums values of layers over what one PE runs; of several stages the most.
Add: TypeAlias = Callable[[PerLayer], Cells]


@dataclass(frozen=True)
class Reach:
    """The network as software reaches it.

    plain: by messages from PE to PE; layers: by collectives of layers; staged: through host memory,
    where PEs do not see each other's. slowest_node: z(n), how far the slowest of n nodes is from
    their mean, in standard deviations.
    """

    plain: Network
    layers: Network
    staged: Network
    slowest_node: Cells


@dataclass(frozen=True)
class Exchange:
    """Messages of PEs in a pass: seconds of a term, of which some may pass while they compute.

    hideable: the seconds that need not be waited for; None where all are. share: the part of a pass
    computing in which they may pass. before: whether what it hides, later exchanges cannot. whole:
    whether it is of a whole pass, whatever its steps. steps: so often it happens in a pass; cuts:
    into so many parts samples are cut.
    """

    term: str
    seconds: Cells
    hideable: Cells | None = None
    share: Cells = 0.0
    before: bool = False
    whole: bool = False
    steps: Cells = 1.0
    cuts: Cells = 1.0

    def repeat(self, steps: Cells, cuts: Cells) -> "Exchange":
        """The same in each of so many steps, in each of which samples of one cut are computed."""
        return replace(self, steps=steps, cuts=cuts)


class Parallelism:
    """A way of dividing a network; each one overrides what is its own.

    sends_as: the parallelism whose exchanges it has, its own or one whose numbers serve both: they
    then share compiled programs. feeds_all: whether hosts feed nodes all samples of a replica.
    sent: what its PEs send, as numbers of stage two, is made by `reduce_sent` and read by the
    methods below it.
    """

    name: ClassVar[str]
    sends_as: ClassVar[str]
    feeds_all: ClassVar[bool] = False

    @property
    def divides(self) -> Divided | None:
        """The part of a layer that it divides; None where the network stays whole."""
        return KINDS[self.name].divides if self.name in KINDS else None

    @property
    def segmented(self) -> bool:
        """True if PEs run layers of their own, through which samples pass in segments."""
        return self.name in KINDS and KINDS[self.name].segmented

    def take_part(self, division: Division) -> Layers:
        """The layers as the busiest PE of the group computes them."""
        return division.layers

    def share_rows(self, division: Division) -> tuple[PerLayer | float, PerLayer | float]:
        """The part of each layer's input, and of its output, that the fullest PE holds."""
        return 1.0, 1.0

    def share_planes(self, division: Division) -> tuple[PerLayer, PerLayer] | None:
        """The parts of channels of x, and of filters of dL/dy, that a PE has; None: all."""
        return None

    def sum_layers(self, values: PerLayer, division: Division) -> PerStage:
        """Sums of layers' values over what each PE runs [stage, cells]: all of them, by default."""
        return merged(values)

    def time_layers(self, times: LayerTimes, division: Division) -> tuple[Cells, Cells, Cells]:
        """Forward and backward [s a sample], whatever the batch [s], launches [1 a pass]."""
        return total(times.forward + times.backward), total(times.fixed), total(times.launches)

    def hold(self, division: Division, own: Own) -> Holding:
        """Bytes that the PEs of a group hold at once."""
        return hold_whole(division, own)

    def hold_segments(self, division: Division, own: Own, holding: Holding) -> PerStage:
        """Bytes a sample of each PE's activations, in segments where samples pass in some."""
        return holding.peak

    def reduce_sent(self, division: Division, own: Layers, add: Add) -> Any:
        """Exchanges between the PEs of a group.

        division: of the layers as the parallelisms outside of this one divide them. own: the layers
        as a PE computes them in the end.
        """
        raise NotImplementedError

    def count_items(self, division: Division) -> Mapping[str, PerLayer]:
        """Items a sample that a PE sends at each layer, by column of an explanation."""
        return {}

    def find_degree(self, case: Case) -> Cells:
        """Into how many parts it divides the network."""
        return case.run.degrees[self.sends_as]

    def count_steps(self, case: Case) -> Cells:
        """Steps of a pass, one after the other, in each of which a PE computes."""
        return 1.0

    def cut_steps(self, case: Case) -> Cells:
        """Into how many parts the samples of a pass are cut, a part a step."""
        return 1.0

    def find_paths(self, sent: Any, case: Case, reach: Reach) -> Any:
        """Costs of its exchanges that no bytes change, computed once, ahead of the cells."""
        return None

    def list_exchanges(
        self, sent: Any, case: Case, paths: Any, batch: Cells
    ) -> tuple[Exchange, ...]:
        """Exchanges between the PEs of a group in a pass, or a step, of `batch` samples."""
        return ()

    def time_step(self, sent: Any, case: Case, batch: Cells) -> Mapping[str, Cells]:
        """Seconds of a step of `batch` samples beside the layers' own, by term of compute."""
        return {}

    def time_once(self, sent: Any, case: Case) -> Mapping[str, Cells]:
        """Seconds that dividing takes beside, in all steps together, by term of compute."""
        return {}

    def reduce_through_hosts(
        self, sent: Any, case: Case, network: Network, slowest: Cells, replicas: Ring
    ) -> Cells:
        """Seconds in which gradients pass through host memory.

        slowest: z(n) of the nodes. replicas: the ring of a PE with its likes.
        """
        return xp.zeros(())


def open_logs(convolutions: Cells, case: Case, degree: Cells) -> Exchange:
    """2 L_c p tau: log files that every PE opens, one after the other in one folder.

    Twice a pass at each of the L_c convolutions that a group of several PEs exchanges (ChainerMNX,
    as ParaDL's authors ran it).
    """
    layers = xp.where(xp.greater(degree, 1), 2 * convolutions, 0.0)
    return Exchange("log_files", layers * case.run.p * case.software.log_open)
