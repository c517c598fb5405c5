"""Pipeline parallelism: each PE of a group holds a stage G_i of consecutive layers.

ParaDL, Table III, row Pipeline (GPipe, Huang et al. 2019): S segments (micro-batches) pass through
q stages in q + S - 1 steps, as long as the slowest stage. Of blocks: Narayanan et al. 2021 (SC21),
section 2.2; schedules: `kernels.work.schedules`.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from paradl.kernels.arrays import Cells, PerLayer, PerStage, pytree, xp
from paradl.kernels.columns import Column, read_first
from paradl.kernels.configuration.case import Case
from paradl.kernels.machine.network import Cost, find_path
from paradl.kernels.machine.speeds import Fabric
from paradl.kernels.parallelism.divided_blocks import (
    DividedBlocks,
    Exchanged,
    Marks,
    Repeats,
    Rule,
    Rules,
)
from paradl.kernels.parallelism.parallelism import Add, Exchange, Exchanges, Parallelism
from paradl.kernels.work.division import Division
from paradl.kernels.work.layers import Layers, LayerTimes
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.memory import Holding, LayerShares, hold_runs, hold_whole
from paradl.kernels.work.schedules import (
    INTERLEAVES,
    SCHEDULES,
    Schedule,
    Stage,
    count_parts,
    is_uneven,
    leave_micro_batches,
    name_schedule,
    share_bubble,
)
from paradl.kernels.work.stages import join_chunks, largest, passed_on, stage_sums
from paradl.kernels.work.transformer import Held, Training, Transformer


@pytree
class Cut:
    """Messages of a pipeline: items per sample at the largest cut between two stages."""

    stage_items: Cells


class Pipeline(Parallelism):
    """Divides layers into stages; the largest counts, separately for each quantity."""

    name = sends_as = "pipeline"
    feeds_all = True

    repeats: ClassVar[Repeats] = {
        "chunks": lambda layouts: (layouts.chunks > 1) & (layouts.pipeline == 1),
        "group": lambda layouts: layouts.group == layouts.pipeline,
    }
    marks: ClassVar[Marks] = {
        # A stage with one block more than others then decides memory and time.
        "uneven_stages": lambda net, layouts, training, _: is_uneven(net, layouts, training),
        # With m < p the bubble (p - 1)/m is about as long as the work, or longer (SC21, 2.2).
        "starved": lambda net, layouts, training, _: (
            training.count_micro_batches(layouts) < layouts.pipeline
        ),
    }

    def sum_layers(self, values: PerLayer, division: Division) -> PerStage:
        """Sum by stage: stages exchange, and update, concurrently."""
        return stage_sums(values, xp.asarray(division.placement.ends), division.options.chunks)

    def time_layers(self, times: LayerTimes, division: Division) -> tuple[Cells, Cells, Cells]:
        """Return the times of the slowest stage; with BW_l = 2 FW_l it is the same both ways."""
        # Stages with most forward and most backward time need not be one: an upper bound.
        forward, backward, fixed, launches = (
            largest(values, xp.asarray(division.placement.ends), division.options.chunks)
            for values in (times.forward, times.backward, times.fixed, times.launches)
        )
        return forward + backward, fixed, launches

    def hold(self, division: Division, shares: LayerShares) -> Holding:
        """Compute the memory of each stage by itself."""
        ends = xp.asarray(division.placement.ends)
        return hold_runs(division, shares, ends, division.options.chunks)

    def hold_segments(self, division: Division, shares: LayerShares, holding: Holding) -> PerStage:
        """Return bytes per sample of each stage, by its schedule.

        One segment goes backward at a time. Tensors of the others are kept, unless their forward
        passes are recomputed from the stage's inputs. A chunk of a segment counts 1/v.
        """
        recompute, chunks = division.options.recompute == "full", division.options.chunks
        # A pipeline of one stage is not cut into segments.
        several = division.degrees[self.sends_as] > 1
        segments = xp.where(several, division.segments, 1.0)
        # Stages hold what they received; the samples are among what the first one keeps.
        first = _mark_first(holding.entry)
        received = join_chunks((1 - first) * holding.entry, chunks)
        waiting: PerStage = 1 - 1 / segments
        schedule = SCHEDULES[name_schedule(division.options.schedule, chunks)]
        if not schedule.is_late:
            degree = division.degrees[self.sends_as]
            flying = _count_flying(schedule, holding.kept, degree, segments, chunks)
            received, waiting = received * flying / segments, (flying - 1 / chunks) / segments
        samples = join_chunks(first * holding.entry, chunks)
        others = waiting * (samples if recompute else holding.kept)
        activations = others + received + holding.peak / segments
        if not recompute:
            return activations
        # A single stage is cut into runs, as any other network.
        alone = _mark_first(activations) * hold_whole(division, shares).peak
        return xp.where(several, activations, alone)

    def reduce_sent(self, division: Division, shares: Layers, add: Add) -> Cut:
        """Return what crosses a cut, from a PE's share: tensors that later layers read."""
        crossing, ends = division.placement.crossing, xp.asarray(division.placement.ends)
        carried = division.layers.crossing if crossing is None else crossing
        return Cut(passed_on(carried, ends))

    def count_steps(self, case: Case) -> Cells:
        """Count (q - 1) / v + S steps; a single stage has no segments."""
        degree = self.find_degree(case)
        further = (degree - 1) / case.options.chunks + (case.run.segments - 1)
        return 1 + xp.where(xp.greater(degree, 1), further, 0.0)

    def cut_steps(self, case: Case) -> Cells:
        return xp.where(xp.greater(self.find_degree(case), 1), case.run.segments, 1.0)

    def time_once(self, sent: Cut, case: Case) -> Mapping[str, Cells]:
        """Compute (q-1)/S of the slowest stage's time, while the pipeline fills and drains; or
        the part of it that chunks or a zero-bubble schedule leave.
        """
        run, share = case.run, float(share_bubble(case.options.schedule, case.options.chunks))
        # The total is b (q+S-1)/S, of which b is `forward_backward`.
        seconds = run.batch * case.machine_work.forward_backward
        bubble = (self.find_degree(case) - 1) / run.segments * seconds
        return {"pipeline_bubble": share * bubble}

    def find_paths(self, sent: Cut, case: Case, fabric: Fabric) -> Cost:
        return find_path(fabric.messages, case.find_ring(self.name))

    def list_exchanges(self, sent: Cut, case: Case, paths: Cost, batch: Cells) -> Exchanges:
        """List 2 (q + v S - 2) P2P(b/S a c), of which 2 (v S - 1) can overlap with computing.

        Start-ups of further chunks overlap with nothing, as those of blocks.
        """
        run, degree, chunks = case.run, self.find_degree(case), case.options.chunks
        m = batch / run.segments * run.delta * sent.stage_items
        # A single stage sends nothing.
        several = xp.where(xp.greater(degree, 1), 1.0, 0.0)
        once = several * (paths.alpha + m * paths.beta)
        # Those of the first segment fill and drain the pipeline, when no stage has other work.
        passed = chunks * run.segments
        steady = 2 * (passed - 1) * once
        seconds = 2 * (degree - 1) * once + steady
        hideable = steady - several * 2 * (passed - run.segments) * paths.alpha
        return (Exchange("point_to_point", seconds, hideable, share=(passed - 1) / passed),)

    @staticmethod
    def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
        interleaves = training.schedule == INTERLEAVES
        micro_batches = training.count_micro_batches(layouts)
        pp, v = f"pp{read_first(layouts.pipeline)}", f"v{read_first(layouts.chunks)}"
        parts = count_parts(layouts.pipeline, layouts.chunks, training)
        blocks = f"{net.blocks:,} block{'s' if net.blocks > 1 else ''}"
        return {
            "interleaving": Rule(
                (layouts.chunks > 1)
                & (
                    leave_micro_batches(micro_batches, layouts.pipeline, layouts.passes)
                    | (not interleaves)
                ),
                f"{v} needs stages, and micro-batches that fill them: "
                f"{read_first(micro_batches):,} in groups of {read_first(layouts.passes)} over {pp}"
                if interleaves
                else f"{training.schedule} does not interleave {v} chunks",
                "micro-batches that are a multiple of the stages"
                if interleaves
                else f"schedule {INTERLEAVES}, or one chunk",
            ),
            "more_stages_than_blocks": Rule(
                (parts > net.blocks) & is_uneven(net, layouts, training),
                f"{pp} x {v} is more than {blocks}",
                f"at most {net.blocks} chunks in all, or {net.blocks + 2}",
            ),
        }

    def cost_exchanges(self, divided: DividedBlocks) -> tuple[Column, Column]:
        """Compute seconds of a message between stages of blocks: start-up, and bytes."""
        layouts = divided.layouts
        stride = layouts.tensor * layouts.context * layouts.data
        # Without sequence parallelism each tensor rank sends all of it (Megatron-LM, schedules.py).
        message = divided.activations / layouts.sigma
        return divided.transfers.split_send(layouts.pipeline, stride, message)

    def exchange_iteration(
        self,
        divided: DividedBlocks,
        costs: tuple[Column, Column],
        stage: Stage,
        held: Held,
        passes: Column | None,
    ) -> Exchanged:
        """Compute exposed seconds of messages between stages of blocks.

        Those that fill and drain the pipeline, and what the schedule does not hide of others.
        """
        layouts, training = divided.layouts, divided.training
        hops, flushes = layouts.pipeline - 1, training.count_flushes(layouts)
        micro_batches = training.count_micro_batches(layouts)
        startups, sent = costs
        if passes is None:
            # One message per pass of a chunk, the first of which fills: Table III's 2 (p + S - 2).
            parts = count_parts(layouts.pipeline, layouts.chunks, training)
            passed = micro_batches * (parts // layouts.pipeline)
            hops = np.where(hops > 0, hops + passed - 1, 0)
            return {"stage_exchange": flushes * 2 * hops * (startups + sent)}
        # Others are waited for without chunks, or start late with them.
        waits = SCHEDULES[training.schedule].waits & (layouts.chunks == 1)
        waited = (micro_batches - 1) * (startups + sent)
        further = np.where(waits, waited, micro_batches * (layouts.chunks - 1) * startups)
        further = np.where(hops > 0, further, 0)
        return {"stage_exchange": flushes * 2 * (hops * (startups + sent) + further)}


PARALLELISM = Pipeline()


def _count_flying(
    schedule: Schedule, values: PerStage, degree: Cells, segments: Cells, chunks: int
) -> PerStage:
    """Count segments in flight when the first goes backward, at each stage."""
    number = xp.arange(values.shape[0], dtype=float).reshape(-1, *[1] * (values.ndim - 1))
    flying = xp.minimum(*schedule.in_flight(degree, number, segments, chunks, degree))
    # Of stages that a cell lacks, too; and a number for each, where all have the same.
    return xp.maximum(flying, xp.ones_like(number))


def _mark_first(values: PerStage) -> PerStage:
    """Return 1 for the first stage and 0 for the others."""
    return xp.concatenate([xp.ones_like(values[:1]), xp.zeros_like(values[1:])])
