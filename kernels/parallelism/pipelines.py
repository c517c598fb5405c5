"""Pipeline parallelism: stages of blocks, through which micro-batches pass.

Narayanan et al. 2021 (SC21), section 2.2. Schedules: `kernels.work.schedules`.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np

from paradl.kernels.columns import Column, read_first
from paradl.kernels.parallelism.dimension import Dimension, Exchanged, Marks, Repeats
from paradl.kernels.parallelism.rules import Rule, Rules
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.parameters import Parameters
from paradl.kernels.work.schedules import INTERLEAVES, count_parts, is_uneven
from paradl.kernels.work.transformer import Training, Transformer


class PipelineParallel(Dimension):
    """Divides blocks into stages of one or more chunks."""

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

    @staticmethod
    def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
        interleaves = training.schedule == INTERLEAVES
        micro_batches = training.count_micro_batches(layouts)
        pp, v = f"pp{read_first(layouts.pipeline)}", f"v{read_first(layouts.chunks)}"
        parts = count_parts(layouts.pipeline, layouts.chunks, training)
        blocks = f"{net.blocks:,} block{'s' if net.blocks > 1 else ''}"
        return {
            "interleaving": Rule(
                (layouts.chunks > 1) & _cannot_interleave(layouts, micro_batches, training),
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

    def exchange_iteration(self, held: Parameters, passes: Column | None) -> Exchanged:
        """Compute seconds of messages that fill and drain a pipeline.

        Of the others only the start-ups of further chunks are exposed.
        """
        layouts, hops = self.layouts, self.layouts.pipeline - 1
        flushes = self.training.count_flushes(layouts)
        micro_batches = self.training.count_micro_batches(layouts)
        startups, sent = self._message
        if passes is None:
            # One message per pass of a chunk, the first of which fills: Table III's 2 (p + S - 2).
            parts = count_parts(layouts.pipeline, layouts.chunks, self.training)
            passed = micro_batches * (parts // layouts.pipeline)
            hops = np.where(hops > 0, hops + passed - 1, 0)
            return {"stage_exchange": flushes * 2 * hops * (startups + sent)}
        further = micro_batches * (layouts.chunks - 1) * startups
        return {"stage_exchange": flushes * 2 * (hops * (startups + sent) + further)}

    @cached_property
    def _message(self) -> tuple[Column, Column]:
        layouts = self.layouts
        stride = layouts.tensor * layouts.context * layouts.data
        # Without sequence parallelism each tensor rank sends all of it (Megatron-LM, schedules.py).
        message = self.activations / layouts.sigma
        return self.transfers.split_send(layouts.pipeline, stride, message)


def _cannot_interleave(layouts: Layouts, micro_batches: Column, training: Training) -> Column:
    """Find layouts whose micro-batches are not a multiple of N, or with N below the stages.

    Megatron-LM, model_parallel_config.py: microbatch_group_size_per_vp_stage.
    """
    rest = micro_batches % layouts.passes
    unfit = (layouts.passes < layouts.pipeline) | ((rest > 0) & (rest < layouts.pipeline))
    return np.asarray((layouts.pipeline == 1) | unfit | (training.schedule != INTERLEAVES))
