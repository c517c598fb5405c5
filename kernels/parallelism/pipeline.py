"""Pipeline parallelism: a group's PEs each hold a contiguous stage G_i of the layers.

ParaDL, Table III, row Pipeline (GPipe, Huang et al. 2019): S segments (micro-batches) pass q
stages in q + S - 1 steps of the slowest stage's time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax

from kernels.arrays import Cells, PerLayer, PerStage
from kernels.configuration.case import Case
from kernels.machine.network import Link
from kernels.machine.rings import find_path
from kernels.namespace import xp
from kernels.parallelism.parallelism import Add, Exchange, Parallelism, Reach
from kernels.work.division import Division
from kernels.work.layers import Layers, LayerTimes
from kernels.work.memory import Holding, Own, hold_runs, hold_whole
from kernels.work.stages import largest, passed_on, stage_sums


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Cut:
    """Messages in a pipeline: items a sample of the largest cut between two stages."""

    stage_items: Cells


class Pipeline(Parallelism):
    """Layers divided into stages; the largest counts, for each quantity by itself."""

    name = sends_as = "pipeline"
    feeds_all = True

    def sum_layers(self, values: PerLayer, division: Division) -> PerStage:
        """Of each stage; stages exchange, and update, at once."""
        return stage_sums(values, xp.asarray(division.placement.ends))

    def time_layers(self, times: LayerTimes, division: Division) -> tuple[Cells, Cells, Cells]:
        """Of the slowest stage, forward and backward each; with BW_l = 2 FW_l they are the same."""
        ends = xp.asarray(division.placement.ends)
        seconds = largest(times.forward, ends) + largest(times.backward, ends)
        return seconds, largest(times.fixed, ends), largest(times.launches, ends)

    def hold(self, division: Division, own: Own) -> Holding:
        """Memory of each stage by itself."""
        return hold_runs(division, own, xp.asarray(division.placement.ends))

    def hold_segments(self, division: Division, own: Own, holding: Holding) -> PerStage:
        """Bytes a sample of each stage (GPipe, Huang et al. 2019; 1F1B, Narayanan et al. 2019).

        One segment goes backward at a time. What the others read is kept, unless their forward
        passes are run again from what came into the stage.
        """
        recompute = division.options.recompute == "full"
        # A pipeline of one stage is not cut into segments.
        several = division.degrees[self.sends_as] > 1
        segments = xp.where(several, division.segments, 1.0)
        entry, first = holding.entry, _mark_first(holding.entry)
        # A stage but the first holds what it got; the first one's samples are in what it keeps.
        received = (1 - first) * entry
        waiting: PerStage = 1 - 1 / segments
        if division.options.schedule == "1f1b":
            flying = _count_flying(holding.kept, division.degrees[self.sends_as], segments)
            received, waiting = received * flying / segments, (flying - 1) / segments
        others = waiting * (first * entry if recompute else holding.kept)
        activations = others + received + holding.peak / segments
        if not recompute:
            return activations
        # A pipeline of one stage is cut into runs, as any other network.
        alone = _mark_first(activations) * hold_whole(division, own).peak
        return xp.where(several, activations, alone)

    def reduce_sent(self, division: Division, own: Layers, add: Add) -> Cut:
        """All that crosses a cut, of a PE's own part: what later layers read of those before it."""
        crossing, ends = division.placement.crossing, xp.asarray(division.placement.ends)
        carried = division.layers.crossing if crossing is None else crossing
        return Cut(passed_on(carried, ends, division.degrees[self.sends_as]))

    def count_steps(self, case: Case) -> Cells:
        """q + S - 1 of q stages; a pipeline of one stage is not cut into segments."""
        degree = self.find_degree(case)
        return 1 + xp.where(xp.greater(degree, 1), degree + case.run.segments - 2, 0.0)

    def cut_steps(self, case: Case) -> Cells:
        """S: a segment is a pass of its own."""
        return xp.where(xp.greater(self.find_degree(case), 1), case.run.segments, 1.0)

    def time_once(self, sent: Cut, case: Case) -> Mapping[str, Cells]:
        """(q-1)/S of the slowest stage's time, while the pipeline fills and drains."""
        run = case.run
        # Of b (q+S-1)/S the rest: b itself is `forward_backward`.
        seconds = run.batch * case.machine_work.forward_backward
        return {"pipeline_bubble": (self.find_degree(case) - 1) / run.segments * seconds}

    def find_paths(self, sent: Cut, case: Case, reach: Reach) -> Link:
        """From stage to stage."""
        return find_path(reach.plain, case.find_ring(self.name))

    def list_exchanges(
        self, sent: Cut, case: Case, paths: Link, batch: Cells
    ) -> tuple[Exchange, ...]:
        """2 (q+S-2) P2P(b/S a c), of which 2 (S-1) can pass while stages compute."""
        run, degree = case.run, self.find_degree(case)
        m = batch / run.segments * run.delta * sent.stage_items
        # A single stage sends nothing.
        several = xp.where(xp.greater(degree, 1), 1.0, 0.0)
        once = several * (paths.alpha + m * paths.beta)
        waiting = run.segments - 1
        steady = 2 * waiting * once
        seconds = 2 * (degree - 1) * once + steady
        return (Exchange("point_to_point", seconds, steady, share=waiting / run.segments),)


PARALLELISM = Pipeline()


def _count_flying(values: PerStage, degree: Cells, segments: Cells) -> PerStage:
    """Segments whose forward pass is done before the first goes backward: q - i of stage i."""
    number = xp.arange(values.shape[0], dtype=float).reshape(-1, *[1] * (values.ndim - 1))
    return xp.minimum(xp.maximum(degree - number, 1.0), segments)


def _mark_first(values: PerStage) -> PerStage:
    """1 for the first stage, 0 for the others."""
    return xp.concatenate([xp.ones_like(values[:1]), xp.zeros_like(values[1:])])
