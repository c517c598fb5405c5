"""Placements of operators: each PE runs some operators, in order, and waits for their inputs.

Pal et al. 2019 (IEEE Micro 39(5), "Optimizing Multi-GPU Parallelization Strategies for Deep
Learning Training"), model parallelism by placement. What each PE runs, and in which order, is
determined before (docs/placement.md): a step is as long as its critical path of layers and
messages. In a step of S segments (micro-batches) layers count differently often: while the group
fills and drains once, on the busiest PE for every segment.
"""

from functools import partial

from paradl.kernels.arrays import (
    AnyArray,
    Cells,
    PerDevice,
    PerLayer,
    PerStage,
    map_leading,
    pytree,
    xp,
)
from paradl.kernels.configuration.case import Case
from paradl.kernels.machine.network import Cost, find_path
from paradl.kernels.machine.speeds import Fabric
from paradl.kernels.parallelism.parallelism import Add, Exchange, Parallelism
from paradl.kernels.work.division import Division, Placed
from paradl.kernels.work.layers import Layers, LayerTimes, total
from paradl.kernels.work.memory import Holding, LayerShares, find_states, sum_row_states


@pytree
class Path:
    """Traffic on the critical path: messages, and items per sample."""

    path_messages: Cells
    path_items: Cells


class OperatorPlacement(Parallelism):
    """Places operators on PEs: the critical path gives the time, the busiest PE everything else."""

    name = sends_as = "placement"

    def sum_layers(self, values: PerLayer, division: Division) -> PerStage:
        """Sum by PE: PEs update, and exchange with other replicas, concurrently."""
        return sum_devices(values, expect_placed(division).runs)

    def time_layers(self, times: LayerTimes, division: Division) -> tuple[Cells, Cells, Cells]:
        """Return the times of the critical path."""
        placed = expect_placed(division)
        # A third of the fixed time of a pass is forward (docs/machine.md).
        passes = (placed.forward + 2 * placed.backward) / 3
        segments = xp.asarray(placed.segments)
        launches = xp.max(sum_devices(times.launches, placed.runs), axis=0)
        # Each segment is a pass with its fixed time and launches.
        return (
            total(placed.forward * times.forward + placed.backward * times.backward),
            segments * total(passes * times.fixed),
            segments * launches,
        )

    def hold(self, division: Division, shares: LayerShares) -> Holding:
        """Compute the memory of each PE: of its layers, and of what others send it.

        As in a pipeline, one segment at a time goes backward, and tensors of the others are kept.
        """
        placed, tensors = expect_placed(division), shares.tensors
        received = division.delta * xp.asarray(placed.received)
        kept = sum_devices(tensors.kept, placed.runs)
        peaks = find_peaks(tensors.kept, tensors.inputs + tensors.outputs, placed.runs)
        part = 1 / xp.asarray(placed.segments)
        return Holding(
            kept=kept,
            peak=(1 - part) * kept + received + part * peaks,
            entry=received,
            states=sum_devices(find_states(division, shares), placed.runs),
            rows=sum_row_states(division, shares, partial(sum_devices, runs=placed.runs)),
        )

    def reduce_sent(self, division: Division, shares: Layers, add: Add) -> Path:
        placed = expect_placed(division)
        return Path(xp.asarray(placed.messages), xp.asarray(placed.items))

    def find_paths(self, sent: Path, case: Case, fabric: Fabric) -> Cost:
        # One path for all: grids place operators inside a node alone.
        return find_path(fabric.messages, case.find_ring(self.name))

    def list_exchanges(
        self, sent: Path, case: Case, paths: Cost, batch: Cells
    ) -> tuple[Exchange, ...]:
        """List the messages, none of which overlap with computing."""
        # The next operator on the critical path waits for each.
        m = batch * case.run.delta * sent.path_items
        return (Exchange("point_to_point", paths.time(m, sent.path_messages)),)


PARALLELISM = OperatorPlacement()


def expect_placed(division: Division) -> Placed:
    """Return the layers that each PE of a placed group runs."""
    placed = division.placement.placed
    assert placed is not None  # grids make no such group without it
    return placed


def sum_devices(values: PerLayer, runs: PerDevice) -> AnyArray:
    """Sum over the layers that each PE runs [device, cells]."""
    return xp.sum(xp.asarray(runs) * xp.asarray(values), axis=1)


def find_peaks(kept: PerLayer, gradients: PerLayer, runs: PerDevice) -> AnyArray:
    """Return the peak of each PE in one pass [device, cells].

    kept: by layer, for the backward pass. gradients: of its input and output.
    """

    def find_peak(shares: AnyArray) -> AnyArray:
        so_far = xp.cumsum(shares * kept, axis=0)
        return xp.max(shares * (so_far + gradients), axis=0)

    # PE by PE: all at once would take memory for PEs x layers x cells.
    peaks: AnyArray = map_leading(find_peak, xp.asarray(runs))
    return peaks
