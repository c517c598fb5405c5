"""The scalar machine oracle against docs/machine.md, worked out by hand, and at its limits.

A convolution of 4x4 samples, its activation and a fully connected layer on a machine with round
numbers. With b samples and all layers on one PE:

    conv  x 32, y 64, w 72, bias 4, F 2304:   s = 3 x 2304 / (100 x 0.5) = 138.24
                                              f = 3 x 76 x 4 / 1000 + 0.5 = 1.412
    relu  x 64, y 64:                         s = 5 x 128 x 4 / 1000 = 2.56,  f = 0.5
    fc    x 64, y 10, w 640, bias 10, F 1280: s = 3 x 1280 / (100 x 0.25) = 153.6
                                              f = 3 x 650 x 4 / 1000 + 0.5 = 8.3

in all 294.4 s a sample and 10.212 s a pass, and for SGD 20 x 726 / 1000 = 14.52 s an iteration.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st
from reference_machine import (
    SAMPLED,
    Layer,
    Machine,
    Run,
    Values,
    checkpointed_runs,
    epoch,
    group_pass,
    iterations,
    largest_batch,
    layer_pass,
    memory,
    parts,
    profile_slowdown,
    search_largest_batch,
    stages,
    terms,
    update_seconds,
)

PLANE = (1, 4, 4)
K3 = (1, 3, 3)

CONV = Layer(32, 64, 72, 4, 2304, "conv2d", 32, 0, PLANE, PLANE, K3, 2, 4, divided=True)
RELU = Layer(64, 64, 0, 0, 64, "other", 64, 16, PLANE, PLANE, channels=4, filters=4)
FC = Layer(64, 10, 640, 10, 1280, "matmul", 8, channels=64, filters=10)
TOY = (CONV, RELU, FC)

# A ring of 2 PEs: 1 s and 1/4 s/B; of more: 2 s and 1/2 s/B.
MACHINE = Machine(
    peak=100.0,
    memory_bandwidth=1000.0,
    memory_capacity=1e9,
    pes_per_node=2,
    levels=[(2, 1.0, 4.0), (8, 2.0, 2.0)],
    g=2.0,
    efficiencies={"conv2d": 0.5, "matmul": 0.25},
    elementwise_passes=5.0,
    layer_overhead=0.5,
    reserved=1000.0,
)
SERIAL = Run(b=2.0, samples=16.0)
SPATIAL = replace(SERIAL, group="spatial", p2=2, factors=(1, 2, 1))
FILTER = replace(SERIAL, group="filter", p2=2)
PIPELINE = replace(SERIAL, group="pipeline", p2=2, ends=(2, 3), segments=4)

COMPUTE = ("forward_backward", "pipeline_bubble", "layer_overhead", "weight_update")
COMMUNICATION = (
    "gradient_exchange",
    "layer_collectives",
    "halo_exchange",
    "split_gather",
    "point_to_point",
)


def assert_terms(run: Run, machine: Machine = MACHINE, **expected: float) -> None:
    """Those terms of the toy's iteration, and no others."""
    everything = dict.fromkeys((*COMPUTE, *COMMUNICATION, "input_wait"), 0.0) | expected
    assert terms(TOY, machine, run) == pytest.approx(everything)


def assert_memory(run: Run, **expected: float) -> None:
    """The parts of the toy's fullest PE, beside what is reserved."""
    total = sum(expected.values()) + 1000
    everything = {"boundary": 0.0, "reserved": 1000.0, "total": total} | expected
    assert memory(TOY, MACHINE, run) == pytest.approx(everything)


# A layer.


def test_layers_bound_by_arithmetic() -> None:
    assert layer_pass(CONV, MACHINE) == pytest.approx((138.24, 1.412))
    assert layer_pass(FC, MACHINE) == pytest.approx((153.6, 8.3))


def test_an_elementwise_layer_passes_over_its_items() -> None:
    assert layer_pass(RELU, MACHINE) == pytest.approx((2.56, 0.5))


def test_a_layer_bound_by_memory() -> None:
    # 3 x (32 + 64) x 4 / 1000; weights as before
    assert layer_pass(CONV, replace(MACHINE, peak=1e9)) == pytest.approx((1.152, 1.412))


def test_halves_take_half_the_traffic() -> None:
    assert layer_pass(RELU, replace(MACHINE, a=2.0)) == pytest.approx((1.28, 0.5))
    assert layer_pass(CONV, replace(MACHINE, a=2.0)) == pytest.approx((138.24, 0.956))


def test_efficiencies_multiply() -> None:
    seconds, _ = layer_pass(CONV, replace(MACHINE, efficiency=0.5))
    assert seconds == pytest.approx(2 * 138.24)
    seconds, _ = layer_pass(replace(CONV, kind="conv3d"), MACHINE)
    assert seconds == pytest.approx(138.24 / 2)  # nothing is said of it: 1


@pytest.mark.parametrize(("optimizer", "moved"), [("none", 0), ("sgd", 20), ("adam", 28)])
def test_update(optimizer: str, moved: float) -> None:
    halves = replace(MACHINE, a=2.0)
    for machine in (MACHINE, halves):
        assert update_seconds(CONV, machine, optimizer) == pytest.approx(moved * 76 / 1000)


def test_a_profile_is_met_where_it_was_measured() -> None:
    # T(2) = 2 x 294.4 + 10.212 = 599.012, measured: 2 x 449.259
    factor = profile_slowdown(TOY, MACHINE, t0=449.259, b0=2)
    assert factor == pytest.approx(1.5)
    slowed = terms(TOY, replace(MACHINE, slowdown=factor), SERIAL)
    assert slowed["forward_backward"] + slowed["layer_overhead"] == pytest.approx(2 * 449.259)
    assert slowed["weight_update"] == pytest.approx(14.52)
    again = profile_slowdown(TOY, replace(MACHINE, slowdown=7.0), t0=449.259, b0=2)
    assert again == pytest.approx(1.5)  # of the system as it stands


# The table's rows.


def test_one_pe() -> None:
    assert_terms(SERIAL, forward_backward=2 * 294.4, layer_overhead=10.212, weight_update=14.52)
    assert_memory(
        SERIAL,
        kept=2 * ((32 + 64 + 8) * 4 + 16),
        working=2 * 128 * 4,  # relu's
        states=726 * 12,
    )


def test_replicas() -> None:
    # AR(4, 2 x 712 bytes): 2 x 3 (2 + 1424/4 x 1/2)
    assert_terms(
        replace(SERIAL, p1=4),
        forward_backward=2 * 294.4,
        layer_overhead=10.212,
        weight_update=14.52,
        gradient_exchange=6 * (2 + 178),
    )
    assert memory(TOY, MACHINE, replace(SERIAL, p1=4)) == memory(TOY, MACHINE, SERIAL)


def test_passes_are_paid_and_the_gradient_exchange_is_not() -> None:
    assert_terms(
        replace(SERIAL, p1=4, accumulate=3),
        forward_backward=3 * 2 * 294.4,
        layer_overhead=3 * 10.212,
        weight_update=14.52,
        gradient_exchange=6 * (2 + 178),
    )


def test_spatial_group() -> None:
    # conv and relu in two halves, fc whole; halos of 2 x 4 x C 4 bytes and the like over 1 s + m/4
    halos = 2 * (1 + 2 * 4 * 8 / 4) + 2 * (1 + 2 * 4 * 16 / 4)
    assert_terms(
        SPATIAL,
        forward_backward=2 * (138.24 / 2 + 2.56 / 2 + 153.6),
        layer_overhead=10.212,
        weight_update=14.52,
        gradient_exchange=2 * (1 + 1424 / 2 / 4),
        halo_exchange=halos,
        split_gather=2 * (1 + 2 * 4 * 64 / 2 / 4),
    )
    assert_memory(
        SPATIAL,
        kept=2 * ((32 + 64) * 4 + 16) / 2 + 2 * 8 * 4,
        working=2 * 74 * 4,  # fc's: relu has 128 / 2
        states=726 * 12,
    )


@pytest.mark.parametrize(
    ("factors", "x", "y", "expected"),
    [
        ((1, 4, 2), (1, 8, 8), (1, 8, 8), 8),
        ((1, 4, 2), (1, 8, 8), (1, 3, 8), 6),  # as far as it has rows of output
        ((1, 4, 2), (1, 2, 8), (1, 3, 1), 2),
        ((2, 4, 2), (1, 1, 1), (1, 1, 1), 1),
        ((2, 2, 2), (4, 4, 4), (4, 4, 4), 8),
    ],
)
def test_parts_of_a_spatial_group(
    factors: tuple[int, int, int], x: tuple[int, int, int], y: tuple[int, int, int], expected: int
) -> None:
    assert parts(replace(RELU, extents_x=x, extents_y=y), factors) == expected


@pytest.mark.parametrize("group", ["filter", "channel"])
def test_filter_and_channel_group(group: Any) -> None:
    # conv's weights in two halves: f = 3 (36 + 4) 4 / 1000 + 0.5 = 0.98, not 1.412
    gather = 1 + 2 * 4 * 64 / 2 / 4
    run = replace(FILTER, group=group)
    assert_terms(
        run,
        forward_backward=2 * (138.24 / 2 + 2.56 + 153.6),
        layer_overhead=0.98 + 0.5 + 8.3,
        weight_update=20 * (76 / 2 + 650) / 1000,
        layer_collectives=3 * gather,
    )
    assert_memory(
        run,
        kept=2 * ((32 + 64 + 8) * 4 + 16),
        working=2 * 128 * 4,
        states=(36 + 4 + 650) * 12,
    )


def test_pipeline() -> None:
    # conv, relu | fc: s 140.8 | 153.6, f 1.912 | 8.3, u 1.52 | 13; S = 4
    assert_terms(
        PIPELINE,
        forward_backward=2 * 153.6,
        pipeline_bubble=2 * 153.6 / 4,
        layer_overhead=5 * 8.3,
        weight_update=13.0,
        point_to_point=2 * 4 * (1 + 2 / 4 * 4 * 64 / 4),
    )
    # states 912 | 7800 bytes: the second stage is the fuller one
    assert_memory(PIPELINE, kept=2 * 8 * 4, working=2 / 4 * 74 * 4, states=650 * 12)


def test_the_fullest_stage_changes_with_the_batch() -> None:
    # 400 + 512/4 b + 912 against 32 + 296/4 b + 7800: from b = 17 on the first
    assert memory(TOY, MACHINE, replace(PIPELINE, b=16.0))["states"] == 7800
    assert memory(TOY, MACHINE, replace(PIPELINE, b=17.0))["states"] == 912


def test_pipeline_takes_the_slowest_stage_of_each_sum() -> None:
    # The second stage has more weights, the first, with twice the FLOPs, more arithmetic.
    layers = (replace(CONV, flops=4608), RELU, FC)
    result = terms(layers, MACHINE, PIPELINE)
    assert result["forward_backward"] == pytest.approx(2 * (2 * 138.24 + 2.56))
    assert result["layer_overhead"] == pytest.approx(5 * 8.3)


def test_passes_of_a_group_are_paid_with_their_messages() -> None:
    for run in (SPATIAL, FILTER, PIPELINE):
        once, thrice = (terms(TOY, MACHINE, replace(run, accumulate=a)) for a in (1, 3))
        whole = {"weight_update", "gradient_exchange"}
        expected = {name: once[name] * (1 if name in whole else 3) for name in once}
        assert thrice == pytest.approx(expected)


def test_halves_exchange_half_the_bytes() -> None:
    fast = replace(MACHINE, levels=[(2, 0.0, 4.0), (8, 0.0, 2.0)])
    for run in (SPATIAL, FILTER, PIPELINE):
        run = replace(run, p1=2)
        full, half = (terms(TOY, replace(fast, a=a), run) for a in (4.0, 2.0))
        assert half["gradient_exchange"] == full["gradient_exchange"] > 0
        for name in set(COMMUNICATION) - {"gradient_exchange"}:
            assert half[name] == full[name] / 2
        narrow = terms(TOY, replace(fast, g=1.0), run)
        assert narrow["gradient_exchange"] == full["gradient_exchange"] / 2


def test_only_a_pipeline_has_segments() -> None:
    for run in (SERIAL, SPATIAL, FILTER):
        cut = replace(run, segments=4)
        assert terms(TOY, MACHINE, cut) == terms(TOY, MACHINE, run)
        assert memory(TOY, MACHINE, cut) == memory(TOY, MACHINE, run)


def test_links_and_algorithms_are_the_references() -> None:
    staged = replace(MACHINE, staging=(3.0, 2.0), phi_halo=2.0, phi_gather=3.0)
    result = terms(TOY, staged, SPATIAL)
    halos = 2 * (3 + 2 * 4 * 8 * 2 / 2) + 2 * (3 + 2 * 4 * 16 * 2 / 2)
    assert result["halo_exchange"] == pytest.approx(halos)
    assert result["split_gather"] == pytest.approx(2 * (3 + 512 / 2 * 3 / 2))
    inside, across = 2 * (1 + 1424 / 2 / 4), 2 * (2 + 1424 / 2 / 2)
    for changes, seconds in (
        ({"allreduce": "hierarchical"}, inside + across),
        ({"algorithm": "tree"}, 2 * 2 * (2 + 1424 / 2)),
        ({"algorithm": "best"}, 2 * 3 * (2 + 1424 / 4 / 2)),
        ({"phi": 2.0}, 2 * 3 * (2 + 1424 / 4 * 2 / 2)),
    ):
        run = replace(SPATIAL, p1=2, **changes)
        assert terms(TOY, MACHINE, run)["gradient_exchange"] == pytest.approx(seconds)
    for links, phi in ((1, 2), (2, 1)):  # conv's 36 weights of a PE and fc's 640, in 2 rings
        machine = replace(MACHINE, links_per_node=links)
        exchange = terms(TOY, machine, replace(FILTER, p1=2))["gradient_exchange"]
        assert exchange == pytest.approx(2 * (2 + 2 * 676 / 2 * phi / 2))


# Recompute.


def test_recompute_runs_forward_twice() -> None:
    for run in (SERIAL, SPATIAL, FILTER, PIPELINE):
        plain, again = (terms(TOY, MACHINE, replace(run, recompute=r)) for r in (False, True))
        for name in ("forward_backward", "pipeline_bubble", "layer_overhead"):
            assert again[name] == pytest.approx(plain[name] * 4 / 3)
        for name in ("weight_update", *COMMUNICATION):
            assert again[name] == plain[name]


def test_recompute_checkpoints_runs() -> None:
    # round(sqrt(3)) = 2 runs: conv, relu | fc
    full = 2 * ((32 + 64) * 4 + 16)
    assert_memory(
        replace(SERIAL, recompute=True),
        kept=full,
        boundary=2 * (32 + 64) * 4,
        working=2 * 128 * 4,
        states=726 * 12,
    )
    assert_memory(
        replace(SPATIAL, recompute=True),
        kept=full / 2,
        boundary=2 * (32 / 2 + 64) * 4,
        working=2 * 74 * 4,
        states=726 * 12,
    )


def test_recompute_in_a_pipeline_keeps_a_segment() -> None:
    assert_memory(
        replace(PIPELINE, recompute=True),
        kept=2 * 32 / 4,
        boundary=2 * 64 * 4,
        working=2 * 296 / 4,
        states=7800,
    )


@pytest.mark.parametrize(
    ("count", "lengths"),
    [(1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2]), (7, [3, 3, 1]), (13, [4, 4, 4, 1])],
)
def test_checkpointed_runs(count: int, lengths: list[int]) -> None:
    assert [len(each) for each in checkpointed_runs(count)] == lengths


def test_there_are_always_as_many_runs_as_meant() -> None:
    for count in range(1, 2000):
        runs = checkpointed_runs(count)
        assert len(runs) == round(math.sqrt(count))
        assert [i for each in runs for i in each] == list(range(count))


def test_recompute_of_few_layers_holds_more() -> None:
    # One run keeps everything, and its input as a boundary beside it.
    layers = (CONV, RELU)
    plain, again = (memory(layers, MACHINE, replace(SERIAL, recompute=r)) for r in (False, True))
    assert again["total"] - plain["total"] == pytest.approx(2 * 32 * 4)


def test_recompute_of_a_stage_that_keeps_less_than_its_input_holds_more() -> None:
    # fc keeps 8 items of 4 bytes, and its input, with recompute, is 64: 64 + 8/4 against 8
    plain, again = (memory(TOY, MACHINE, replace(PIPELINE, recompute=r)) for r in (False, True))
    assert again["total"] - plain["total"] == pytest.approx(2 * 4 * (64 + 8 / 4 - 8))


# Input.


@pytest.mark.parametrize(
    ("p1", "rate", "busy"),
    [
        (1, 1.0, 2 / 1),  # a part of a node has all of its hosts
        (2, 1.0, 4 / 1),
        (8, 1.0, 16 / 4),
        (8, 0.5, 16 / 2),
        (3, 1.0, 6 / 1.5),  # so many samples go to the node that is full
    ],
)
def test_input_is_waited_for(p1: int, rate: float, busy: float) -> None:
    fast = replace(MACHINE, peak=math.inf, memory_bandwidth=math.inf, layer_overhead=0.0)
    fast = replace(fast, levels=[(2, 0.0, math.inf)], input_rate=rate)
    assert terms(TOY, fast, replace(SERIAL, p1=p1))["input_wait"] == pytest.approx(busy)


def test_nodes_of_a_group_share_its_samples() -> None:
    # 4 PEs are two nodes, whatever they do: 2 samples in all, and 1e-3 a second to each
    machine = replace(MACHINE, input_rate=1e-3)
    result = terms(TOY, machine, replace(FILTER, p2=4))
    assert sum(result.values()) == pytest.approx(1000)


@given(st.floats(1e-3, 1e3), st.sampled_from((1, 2, 6, 8)), st.integers(1, 4))
@example(1e3, 1, 1)
@example(1e-3, 1, 1)
def test_an_iteration_takes_the_longer_of_input_and_all_else(rate: float, p1: int, a: int) -> None:
    run = replace(SERIAL, p1=p1, accumulate=a)
    result = terms(TOY, replace(MACHINE, input_rate=rate), run)
    busy = sum(terms(TOY, MACHINE, run).values())
    fed = run.global_batch / max(1, p1 / 2) / rate
    assert sum(result.values()) == pytest.approx(max(busy, fed))
    assert terms(TOY, MACHINE, run)["input_wait"] == 0  # unbounded by default


# An epoch.


def test_exact_and_whole_iterations() -> None:
    machine = replace(MACHINE, input_rate=1e-3)
    for run in (SERIAL, PIPELINE):
        exact = replace(run, p1=2, accumulate=2, samples=20)
        whole = replace(exact, iterations="ceil")
        assert (iterations(exact), iterations(whole)) == (2.5, 3)
        once = terms(TOY, machine, exact)
        assert epoch(TOY, machine, exact) == pytest.approx({n: 2.5 * once[n] for n in once})
        of_samples = {"forward_backward", "pipeline_bubble"}
        expected = {n: (2.5 if n in of_samples else 3) * once[n] for n in once}
        assert epoch(TOY, machine, whole) == pytest.approx(expected)


# Random layers and runs.


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    """A layer whose items and parts are sums of powers of two: bytes come out exactly."""
    sizes = st.integers(0, 10**6).map(float)
    extents = st.tuples(*[st.sampled_from((1, 2, 5, 8, 16))] * 3)
    return Layer(
        x=draw(sizes) + 1,
        y=draw(sizes) + 1,
        w=draw(sizes),
        bias=draw(st.integers(0, 100)),
        flops=draw(st.integers(1, 10**9)),
        kind=draw(st.sampled_from(("conv2d", "conv3d", "matmul", "other"))),
        kept_items=draw(sizes),
        kept_bytes=draw(sizes),
        extents_x=draw(extents),
        extents_y=draw(extents),
        kernel=draw(st.sampled_from(((1, 1, 1), K3, (3, 3, 3)))),
        channels=draw(st.integers(1, 64)),
        filters=draw(st.integers(1, 64)),
        divided=draw(st.booleans()),
    )


networks = st.lists(layers(), min_size=1, max_size=8)
FAST = replace(
    MACHINE,
    peak=1e12,
    memory_bandwidth=1e9,
    layer_overhead=1e-5,
    levels=[(2, 1e-5, 1e9), (8, 1e-4, 1e8)],
    reserved=4096.0,
)


@st.composite
def runs(draw: st.DrawFn, count: int) -> Run:
    """Any group over `count` layers, with whole samples."""
    group: Any = draw(st.sampled_from(("none", "spatial", "filter", "channel", "pipeline")))
    factors, p2 = (1, 1, 1), draw(st.sampled_from((1, 2, 4, 8)))
    ends: tuple[int, ...] = (count,)
    if group == "spatial":
        factors = draw(st.tuples(*[st.sampled_from((1, 2, 4))] * 3))
        p2 = math.prod(factors)
    if group == "pipeline":
        cuts = draw(st.sets(st.integers(1, count - 1))) if count > 1 else set()
        ends = (*sorted(cuts), count)
        p2 = len(ends)
    return Run(
        group=group,
        p1=draw(st.sampled_from((1, 2, 8))),
        p2=1 if group == "none" else p2,
        factors=factors,
        ends=ends,
        segments=draw(st.sampled_from((1, 2, 4, 8))),
        b=draw(st.integers(1, 512)),
        accumulate=draw(st.integers(1, 4)),
        samples=1e5,
        optimizer=draw(st.sampled_from(("none", "sgd", "adam"))),
        recompute=draw(st.booleans()),
        iterations=draw(st.sampled_from(("exact", "ceil"))),
    )


problems = networks.flatmap(lambda network: st.tuples(st.just(network), runs(len(network))))


# Reductions.


@given(networks, runs(1), st.sampled_from(("spatial", "filter", "channel", "pipeline")))
def test_a_group_of_one_is_no_group(network: list[Layer], run: Run, group: Any) -> None:
    alone = replace(run, group="none", p2=1, factors=(1, 1, 1), segments=1)
    grouped = replace(alone, group=group, ends=(len(network),))
    # One ring of p against one of p1: of the same PEs.
    assert terms(network, FAST, grouped) == pytest.approx(terms(network, FAST, alone))
    if group != "pipeline" or not run.recompute:  # which checkpoints stages, not runs
        assert memory(network, FAST, grouped) == pytest.approx(memory(network, FAST, alone))


@given(networks, runs(1), st.sampled_from((1, 2, 4)))
def test_parts_of_one_are_not_divided(network: list[Layer], run: Run, p2: int) -> None:
    points = [replace(each, extents_x=(1, 1, 1), extents_y=(1, 1, 1)) for each in network]
    alone = replace(run, group="none", p2=1)
    spatial = replace(alone, group="spatial", p2=p2, factors=(1, 1, p2))
    assert_same_compute(points, spatial, alone)
    assert memory(points, FAST, spatial) == memory(points, FAST, alone)


@given(networks, runs(1), st.sampled_from(("filter", "channel")), st.sampled_from((1, 2, 4)))
def test_nothing_divided_is_no_group(network: list[Layer], run: Run, group: Any, p2: int) -> None:
    whole = [replace(each, divided=False) for each in network]
    alone = replace(run, group="none", p2=1)
    grouped = replace(alone, group=group, p2=p2)
    assert_same_compute(whole, grouped, alone)
    assert memory(whole, FAST, grouped) == memory(whole, FAST, alone)


def assert_same_compute(network: list[Layer], first: Run, second: Run) -> None:
    one, other = terms(network, FAST, first), terms(network, FAST, second)
    assert {n: one[n] for n in COMPUTE} == pytest.approx({n: other[n] for n in COMPUTE})


@given(problems)
def test_one_segment_is_a_stage_after_the_other(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    run = replace(run, group="pipeline", p2=len(run.ends), segments=1)
    result = terms(network, FAST, run)
    assert result["pipeline_bubble"] == pytest.approx((run.p2 - 1) * result["forward_backward"])


@given(problems, st.integers(2, 5))
def test_passes_of_one_batch_pay_the_overhead_of_each(
    problem: tuple[list[Layer], Run], count: int
) -> None:
    network, run = problem
    together = terms(network, FAST, replace(run, b=run.b * count, accumulate=1))
    apart = terms(network, FAST, replace(run, accumulate=count))
    for name in ("forward_backward", "pipeline_bubble", "weight_update", "gradient_exchange"):
        assert apart[name] == pytest.approx(together[name])
    assert apart["layer_overhead"] == pytest.approx(count * together["layer_overhead"])
    for name in ("halo_exchange", "layer_collectives", "split_gather", "point_to_point"):
        assert apart[name] >= together[name] * (1 - 1e-12)  # a latency for each message


@given(problems)
def test_communication_of_one_pass_is_the_papers(problem: tuple[list[Layer], Run]) -> None:
    """The reference's rows, asked in its own words, where no precision tells the bytes apart."""
    network, run = problem
    rows = [
        reference.Layer(
            "layer",
            each.kind,
            *(each.x, each.y, each.w, each.bias, each.flops, each.channels, each.filters),
            *(each.extents_x, each.extents_y, each.kernel),
            seconds=1.0,
        )
        for each in network
    ]
    mask = tuple(each.divided for each in network)
    if run.group in ("pipeline", "spatial"):  # whose stages and factors the reference decides
        run = replace(run, group="filter", p2=2)
    strategy = "data" if run.group == "none" else f"data+{run.group}"
    p, group = run.p1 * run.p2, None if run.group == "none" else run.p2
    setup = reference.Setup(strategy, p, run.b, samples=1e5, group=group, mask=mask)
    system = reference.Machine(1e12, 1.0, 1e9, 1e9, 2, 1, FAST.levels)
    theirs = reference.predict(rows, system, setup)["terms"]
    once = replace(run, accumulate=1, iterations="exact")
    ours = epoch(network, replace(FAST, g=4.0), once)
    assert {n: ours[n] for n in COMMUNICATION} == pytest.approx(
        {n: theirs[n] for n in COMMUNICATION}
    )


# Limits.


@given(problems)
def test_large_batches_take_the_time_of_their_samples(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    large = replace(run, b=1e15)
    slowest = max(
        sum(group_pass(network[i], FAST, run)[0] for i in stage) for stage in stages(network, run)
    )
    bubble = (run.p2 - 1) / run.segments if run.group == "pipeline" else 0
    result = terms(network, FAST, large)
    busy = sum(result[name] for name in COMPUTE) / large.global_batch * run.p1
    assert busy == pytest.approx((1 + bubble) * slowest, rel=1e-6)


@given(problems)
def test_without_traffic_arithmetic_and_overhead_remain(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    run = replace(run, group="none", p2=1, recompute=False)
    boundless = replace(FAST, memory_bandwidth=math.inf, efficiencies={})
    result = terms(network, boundless, run)
    arithmetic = sum(each.flops for each in network if each.kind != "other")
    passes = run.accumulate * run.b
    assert result["forward_backward"] == pytest.approx(passes * 3 * arithmetic / 1e12)
    assert result["layer_overhead"] == pytest.approx(run.accumulate * len(network) * 1e-5)
    assert result["weight_update"] == 0


@given(problems)
def test_without_arithmetic_traffic_remains(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    run = replace(run, group="none", p2=1, recompute=False)
    result = terms(network, replace(FAST, peak=math.inf, elementwise_passes=3.0), run)
    items = sum(each.x + each.y for each in network)
    expected = run.accumulate * run.b * 3 * items * 4 / 1e9
    assert result["forward_backward"] == pytest.approx(expected)


@given(problems, st.floats(0.1, 10))
def test_a_machine_that_is_faster_throughout_scales_every_term(
    problem: tuple[list[Layer], Run], factor: float
) -> None:
    network, run = problem
    slow = replace(FAST, input_rate=1e3)
    fast = replace(
        slow,
        peak=slow.peak * factor,
        memory_bandwidth=slow.memory_bandwidth * factor,
        layer_overhead=slow.layer_overhead / factor,
        input_rate=slow.input_rate * factor,
        levels=[(n, alpha / factor, speed * factor) for n, alpha, speed in slow.levels],
    )
    expected = {name: value / factor for name, value in terms(network, slow, run).items()}
    total = sum(expected.values())
    assert terms(network, fast, run) == pytest.approx(expected, rel=1e-9, abs=1e-9 * total)


@given(networks, st.integers(1, 64), st.integers(1, 64))
def test_equal_stages_share_the_work(network: list[Layer], p2: int, segments: int) -> None:
    row = network[0]
    run = Run(
        group="pipeline", p2=p2, ends=tuple(range(1, p2 + 1)), segments=segments, b=64, samples=1e5
    )
    s, f = layer_pass(row, FAST)
    result = terms([row] * p2, FAST, run)
    ideal = (64 / segments * s + f) * (segments + p2 - 1)  # a segment a beat
    assert sum(result[name] for name in COMPUTE[:3]) == pytest.approx(ideal)


@given(problems)
def test_a_slowdown_leaves_updates_and_messages(problem: tuple[list[Layer], Run]) -> None:
    network, run = problem
    plain, slowed = (terms(network, replace(FAST, slowdown=f), run) for f in (1.0, 2.5))
    passes = COMPUTE[:3]
    expected = {name: plain[name] * (2.5 if name in passes else 1) for name in plain}
    assert slowed == pytest.approx(expected)


# Memory.


@given(networks, runs(1), st.sampled_from(("filter", "channel")))
def test_memory_and_compute_never_rise_along_divisors(
    network: list[Layer], run: Run, group: Any
) -> None:
    along = [replace(run, group=group, p2=p2) for p2 in (1, 2, 4, 8, 24, 48)]
    assert_never_rises([memory(network, FAST, each)["total"] for each in along])
    assert_never_rises([sum(compute(network, each)) for each in along])
    kept = [memory(network, FAST, each)["kept"] for each in along]
    assert set(kept) == {kept[0]}  # gathered outputs are whole


@given(networks, runs(1))
def test_memory_of_a_spatial_group_never_rises(network: list[Layer], run: Run) -> None:
    factors = [(1, 1, 1), (1, 1, 2), (1, 2, 2), (1, 2, 4), (2, 2, 4), (4, 4, 16)]
    along = [replace(run, group="spatial", p2=math.prod(f), factors=f) for f in factors]
    assert_never_rises([memory(network, FAST, each)["total"] for each in along])
    assert_never_rises([sum(compute(network, each)) for each in along])


def compute(network: list[Layer], run: Run) -> list[float]:
    result = terms(network, FAST, run)
    return [result[name] for name in COMPUTE]


def assert_never_rises(values: list[float]) -> None:
    for before, after in pairwise(values):
        assert after <= before * (1 + 1e-12)


@given(problems)
def test_memory_is_the_sum_of_its_parts_and_that_of_no_fewer_layers(
    problem: tuple[list[Layer], Run],
) -> None:
    network, run = problem
    held = memory(network, FAST, run)
    assert held["total"] == pytest.approx(sum(held.values()) - held["total"])
    if run.group == "pipeline" and not run.recompute:
        whole = replace(run, p2=1, ends=(len(network),))
        assert held["total"] <= memory(network, FAST, whole)["total"] * (1 + 1e-12)


@given(problems)
def test_recompute_of_a_pipeline_never_holds_more_than_inputs_and_segments(
    problem: tuple[list[Layer], Run],
) -> None:
    """It saves where the input of a stage is less than kept (1 - 1/S)."""
    network, run = problem
    run = replace(run, group="pipeline", p2=len(run.ends))
    plain, again = (memory(network, FAST, replace(run, recompute=r)) for r in (False, True))

    def saves(stage: range) -> bool:
        kept = sum(4 * network[i].kept_items + network[i].kept_bytes for i in stage)
        return 4 * network[stage[0]].x <= kept * (1 - 1 / run.segments)

    if all(saves(stage) for stage in stages(network, run)):
        assert again["total"] <= plain["total"]
    if not any(saves(stage) for stage in stages(network, run)):
        assert again["total"] > plain["total"]


@given(networks, runs(1))
def test_recompute_of_runs_saves_what_other_runs_keep_less_their_inputs(
    network: list[Layer], run: Run
) -> None:
    run = replace(run, group="none", p2=1)
    plain, again = (memory(network, FAST, replace(run, recompute=r)) for r in (False, True))
    assert again["kept"] <= plain["kept"]
    assert again["kept"] * round(math.sqrt(len(network))) >= plain["kept"] * (1 - 1e-12)
    saved = plain["kept"] - again["kept"] - again["boundary"]
    assert plain["total"] - again["total"] == pytest.approx(saved, abs=1e-6 * plain["total"])


@given(problems, st.integers(2, 9))
def test_memory_is_convex_in_the_batch(problem: tuple[list[Layer], Run], factor: int) -> None:
    """The greatest of lines: at twice the batch no more than twice what depends on it."""
    network, run = problem
    one, many = (memory(network, FAST, replace(run, b=b)) for b in (run.b, run.b * factor))
    assert one["total"] <= many["total"] <= one["total"] * factor
    if run.group != "pipeline":
        for name in SAMPLED:
            assert many[name] == pytest.approx(factor * one[name])
        assert (many["states"], many["reserved"]) == (one["states"], one["reserved"])


@pytest.mark.parametrize(("optimizer", "held"), [("none", 8), ("sgd", 12), ("adam", 16)])
def test_states(optimizer: Any, held: float) -> None:
    run = replace(SERIAL, optimizer=optimizer)
    assert memory(TOY, MACHINE, run)["states"] == 726 * held
    assert memory(TOY, replace(MACHINE, a=2.0), run)["states"] == 726 * held


def test_masks_have_their_bytes_in_every_precision() -> None:
    assert memory(TOY, replace(MACHINE, a=2.0), SERIAL)["kept"] == 2 * (104 * 2 + 16)


# The largest batch.


def test_largest_batch_of_the_toy() -> None:
    # 1000 + 8712 + b (432 + 512)
    for batch in (1, 10, 100):
        capacity = 9712 + 944 * batch
        for extra, expected in ((-1, batch - 1), (0, batch), (943, batch)):
            assert largest_batch(TOY, MACHINE, SERIAL, capacity + extra) == expected
    assert largest_batch(TOY, MACHINE, SERIAL, 9711) == 0


@given(problems, st.integers(0, 10**10), st.sampled_from((2.0, 4.0)))
@example(([CONV], replace(SERIAL, b=1)), 0, 4.0)
@example((list(TOY), PIPELINE), 9000, 4.0)
def test_the_largest_batch_is_the_one_that_trying_yields(
    problem: tuple[list[Layer], Run], capacity: int, a: float
) -> None:
    network, run = problem
    machine = replace(FAST, a=a)
    most = largest_batch(network, machine, run, capacity)
    assert most == search_largest_batch(network, machine, run, capacity)
    totals: list[Values] = [memory(network, machine, replace(run, b=most + n)) for n in (0, 1)]
    assert totals[1]["total"] > capacity
    assert most == 0 or totals[0]["total"] <= capacity


def test_what_holds_nothing_a_sample_is_unbounded() -> None:
    nothing = replace(FC, x=0, y=0, kept_items=0)
    for find in (largest_batch, search_largest_batch):
        assert find([nothing], MACHINE, SERIAL, 1e6) == math.inf
        assert find([nothing], MACHINE, SERIAL, 1e3) == 0
