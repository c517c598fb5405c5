"""The scalar machine oracle at its limits: the time of any layers and run."""

from dataclasses import replace
from typing import Any

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import FAST, networks, problems, runs
from machine_toys import COMPUTE
from reference_machine import epoch, terms
from reference_parts import Layer, Run, group_pass, layer_pass, smooth_maximum, stages

PASSES = ("forward_backward", "pipeline_bubble", "pass_overhead")

# Reductions.


@limit_examples(25)
@given(networks, runs(1), st.sampled_from(("spatial", "filter", "channel", "pipeline")))
def test_one_pe_of_any_group_is_no_group(network: list[Layer], run: Run, group: Any) -> None:
    machine = replace(FAST, input_rate=1e3)
    alone = replace(run, group="none", p2=1, factors=(1, 1, 1))
    grouped = replace(alone, group=group, ends=(len(network),))
    assert terms(network, machine, grouped) == terms(network, machine, alone)
    assert epoch(network, machine, grouped) == epoch(network, machine, alone)


@limit_examples(25)
@given(networks, runs(1), st.sampled_from((1, 2, 4)))
def test_parts_of_one_are_not_divided(network: list[Layer], run: Run, p2: int) -> None:
    points = [replace(each, extents_x=(1, 1, 1), extents_y=(1, 1, 1)) for each in network]
    alone = replace(run, group="none", p2=1)
    spatial = replace(alone, group="spatial", p2=p2, factors=(1, 1, p2))
    assert_same_compute(points, spatial, alone)


@limit_examples(25)
@given(networks, runs(1), st.sampled_from(("filter", "channel")), st.sampled_from((1, 2, 4)))
def test_nothing_divided_is_no_group(network: list[Layer], run: Run, group: Any, p2: int) -> None:
    whole = [replace(each, divided=False) for each in network]
    alone = replace(run, group="none", p2=1)
    grouped = replace(alone, group=group, p2=p2)
    assert_same_compute(whole, grouped, alone)


def assert_same_compute(network: list[Layer], first: Run, second: Run) -> None:
    one, other = terms(network, FAST, first), terms(network, FAST, second)
    assert {n: one[n] for n in COMPUTE} == pytest.approx({n: other[n] for n in COMPUTE})


@limit_examples(25)
@given(problems)
def test_one_segment_is_a_stage_after_the_other(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    run = replace(run, group="pipeline", p2=len(run.ends), segments=1)
    result = terms(network, FAST, run)
    assert result["pipeline_bubble"] == pytest.approx((run.p2 - 1) * result["forward_backward"])


@limit_examples(25)
@given(problems, st.integers(2, 5))
def test_passes_of_one_batch_pay_the_overhead_of_each(
    problem: tuple[list[Layer], Run], count: int
) -> None:
    network, run = problem
    together = terms(network, FAST, replace(run, b=run.b * count, accumulate=1))
    apart = terms(network, FAST, replace(run, accumulate=count))
    for name in ("forward_backward", "pipeline_bubble", "weight_update", "gradient_exchange"):
        assert apart[name] == pytest.approx(together[name])
    assert apart["pass_overhead"] == pytest.approx(count * together["pass_overhead"])
    for name in ("halo_exchange", "layer_collectives", "split_gather", "point_to_point"):
        assert apart[name] >= together[name] * (1 - 1e-12)  # a latency for each message


# Limits.


@limit_examples(25)
@given(problems)
def test_large_batches_take_the_time_of_their_samples(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    large = replace(run, b=1e15)
    slowest = max(
        sum(group_pass(network[i], FAST, run)[0] for i in stage) for stage in stages(network, run)
    )
    bubble = (run.p2 - 1) / run.segments if run.piped else 0
    result = terms(network, FAST, large)
    busy = sum(result[name] for name in COMPUTE) / large.global_batch * run.p1
    assert busy == pytest.approx((1 + bubble) * slowest, rel=1e-6)


@limit_examples(25)
@given(networks, st.integers(1, 64), st.integers(1, 64))
def test_equal_stages_share_the_work(network: list[Layer], p2: int, segments: int) -> None:
    row = network[0]
    run = Run(
        group="pipeline", p2=p2, ends=tuple(range(1, p2 + 1)), segments=segments, b=64, samples=1e5
    )
    s, f = layer_pass(row, FAST)
    result = terms([row] * p2, FAST, run)
    beats = segments + p2 - 1 if p2 > 1 else 1
    device = (64 / segments if p2 > 1 else 64) * s + f  # a segment a beat
    assert sum(result[name] for name in PASSES) == pytest.approx(beats * device)
    ideal = beats * smooth_maximum(device, 1e-5)
    assert sum(result[name] for name in (*PASSES, "launch_wait")) == pytest.approx(ideal)
