"""The scalar machine oracle at its limits: the time of any layers and run."""

import math
from dataclasses import replace
from typing import Any

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import FAST, machines, networks, problems, runs
from machine_toys import COMPUTE
from reference_machine import epoch, terms
from reference_parts import Layer, Machine, Run, group_pass, layer_pass, smooth_maximum, stages

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
@given(problems)
def test_without_traffic_arithmetic_and_launches_remain(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    run = replace(run, group="none", p2=1, recompute=False)
    boundless = replace(FAST, memory_bandwidth=math.inf, efficiencies={}, half_channels=0.0)
    result = terms(network, boundless, run)
    arithmetic = sum(each.flops for each in network if each.kind != "other")
    passes = run.accumulate * run.b
    device, host = passes * 3 * arithmetic / 1e12, run.accumulate * len(network) * 1e-5
    assert result["forward_backward"] == pytest.approx(device)
    assert device + result["launch_wait"] == pytest.approx(smooth_maximum(device, host))
    assert result["pass_overhead"] == result["weight_update"] == 0


@limit_examples(25)
@given(problems)
def test_without_arithmetic_traffic_remains(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    run = replace(run, group="none", p2=1, recompute=False)
    at_once = replace(FAST, peak=math.inf, elementwise_passes=3.0, window_fetch=math.inf)
    result = terms(network, at_once, run)
    items = sum(each.x + each.y for each in network)
    expected = run.accumulate * run.b * 3 * items * 4 / 1e9
    assert result["forward_backward"] == pytest.approx(expected)


@limit_examples(25)
@given(problems, machines(), st.floats(0.1, 10))
def test_a_machine_that_is_faster_throughout_scales_every_term(
    problem: tuple[list[Layer], Run], slow: Machine, factor: float
) -> None:
    network, run = problem
    fast = replace(
        slow,
        peak=slow.peak * factor,
        memory_bandwidth=slow.memory_bandwidth * factor,
        layer_overhead=slow.layer_overhead / factor,
        part_overhead=slow.part_overhead / factor,
        log_open=slow.log_open / factor,
        staging=slow.staging and (slow.staging[0] / factor, slow.staging[1] * factor),
        input_rate=slow.input_rate * factor,
        levels=[
            each._replace(latency=each.latency / factor, bandwidth=each.bandwidth * factor)
            for each in (slow.level(j) for j in range(len(slow.levels)))
        ],
    )
    expected = {name: value / factor for name, value in terms(network, slow, run).items()}
    total = sum(expected.values())
    assert terms(network, fast, run) == pytest.approx(expected, rel=1e-9, abs=1e-9 * total)


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


@limit_examples(25)
@given(problems)
def test_a_slowdown_leaves_updates_and_messages(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    device = replace(FAST, layer_overhead=0.0)
    plain, slowed = (terms(network, replace(device, slowdown=f), run) for f in (1.0, 2.5))
    expected = {name: plain[name] * (2.5 if name in PASSES else 1) for name in plain}
    assert slowed == pytest.approx(expected)
