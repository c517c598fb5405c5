"""Passes of pipelines: in the papers' order, and as long as the kernels' formula of bubbles."""

from itertools import pairwise

import pytest

from paradl.kernels.work.schedules import SCHEDULES
from paradl.sweep.plots.passes import BACKWARD, FORWARD, WEIGHTS, PipelineRun, list_passes

PIPELINES = [
    ("gpipe", 4, 8, 1),
    ("1f1b", 4, 8, 1),
    ("1f1b", 8, 8, 1),
    ("1f1b", 4, 2, 1),
    ("1f1b", 4, 8, 2),
    ("1f1b", 2, 16, 5),
    ("zb1p", 4, 8, 1),
    ("zb1p", 8, 32, 1),
]


@pytest.mark.parametrize(("schedule", "stages", "number", "chunks"), PIPELINES)
def test_the_last_pass_ends_as_the_formula_says(schedule, stages, number, chunks):
    passes = [*list_passes(PipelineRun(schedule, stages, number, 1.0, 2.0, chunks, stages))]
    bubble = 1 / chunks if chunks > 1 else SCHEDULES[schedule].bubble
    assert max(one_pass.end for one_pass in passes) == pytest.approx(
        3 * (number + bubble * (stages - 1))
    )


@pytest.mark.parametrize(("schedule", "stages", "number", "chunks"), PIPELINES)
def test_passes_wait_for_each_other(schedule, stages, number, chunks):
    passes = [*list_passes(PipelineRun(schedule, stages, number, 1.0, 2.0, chunks, stages))]
    kinds = 3 if schedule == "zb1p" else 2
    assert len(passes) == kinds * stages * number * chunks
    for stage in range(stages):
        mine = [one_pass for one_pass in passes if one_pass.stage == stage]
        assert all(after.start >= before.end for before, after in pairwise(mine))
    ends = {
        (
            one_pass.kind,
            one_pass.chunk * stages + one_pass.stage,
            one_pass.micro_batch,
        ): one_pass.end
        for one_pass in passes
    }
    for kind, part, _, micro_batch, start in (
        (
            one_pass.kind,
            one_pass.chunk * stages + one_pass.stage,
            0,
            one_pass.micro_batch,
            one_pass.start,
        )
        for one_pass in passes
    ):
        before = {
            FORWARD: (FORWARD, part - 1, micro_batch),
            BACKWARD: (BACKWARD, part + 1, micro_batch),
            WEIGHTS: (BACKWARD, part, micro_batch),
        }[kind]
        assert start >= ends.get(before, 0.0)
        assert kind == FORWARD or start >= ends[FORWARD, part, micro_batch]


@pytest.mark.parametrize(("schedule", "most"), [("1f1b", [4, 3, 2, 1]), ("zb1p", [4, 4, 4, 4])])
def test_a_stage_keeps_no_more_than_its_schedule(schedule, most):
    """1F1B: p - i micro-batches (Narayanan et al. 2019); zb1p: p (Qi et al. 2023)."""
    ended = WEIGHTS if schedule == "zb1p" else BACKWARD
    kept, highest = [0] * 4, [0] * 4
    for one_pass in list_passes(PipelineRun(schedule, 4, 16, 1.0, 2.0)):
        kept[one_pass.stage] += (one_pass.kind == FORWARD) - (one_pass.kind == ended)
        highest[one_pass.stage] = max(highest[one_pass.stage], kept[one_pass.stage])
    assert highest == most
