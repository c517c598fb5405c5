"""The scalar machine oracle against docs/machine.md: what a PE holds, by hand and at its limits.

The toy of test_reference_machine.py, bytes a sample: conv keeps 32 x 4 = 128, relu
64 x 4 + 16 = 272, fc 8 x 4 = 32. The peak is relu's: 128 + 272 and two gradients of 64 x 4, in all
912; conv's is 128 + 96 x 4 = 512, fc's 432 + 74 x 4 = 728. States for SGD have 726 x 12 = 8712.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import reference
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import FAST, networks, problems, runs
from machine_toys import (
    CHANNEL,
    COMPUTE,
    CONV,
    FC,
    FILTER,
    MACHINE,
    PIPELINE,
    RELU,
    SERIAL,
    SPATIAL,
    TOY,
)
from reference_machine import terms
from reference_memory import SAMPLED, checkpointed_runs, exceeds_memory, memory, stage_memory
from reference_parts import Layer, Run, stages


def assert_memory(run: Run, layers: Sequence[Layer] = TOY, **expected: float) -> None:
    """The parts of the fullest PE, beside what is reserved."""
    everything = dict.fromkeys(SAMPLED, 0.0) | {"rows": 0.0, "reserved": 1000.0} | expected
    everything["total"] = sum(everything.values())
    assert memory(layers, MACHINE, run) == pytest.approx(everything)


# The table's rows.


def test_one_pe() -> None:
    assert_memory(SERIAL, peak=2 * 912, states=8712)
    assert_memory(replace(SERIAL, p1=4, accumulate=3, segments=4), peak=2 * 912, states=8712)


def test_the_peak_may_be_any_layers() -> None:
    wide = replace(CONV, x=200)  # of the gradient alone: 128 + (200 + 64) 4, then 912
    assert_memory(SERIAL, (wide, RELU, FC), peak=2 * (128 + 264 * 4), states=8712)
    assert_memory(SERIAL, (CONV, RELU, replace(FC, y=1000)), peak=2 * (432 + 4256), states=8712)


def test_spatial_group() -> None:
    # conv and relu keep halves, fc all: (64 + 136 + 32) + 74 x 4 is more than relu's 200 + 64 x 4
    assert_memory(SPATIAL, peak=2 * (232 + 296), states=8712)


def test_spatial_group_of_uneven_rows() -> None:
    # 2 of 3 rows in, 3 of 6 out; what is kept goes with the output
    layer = replace(CONV, x=36, y=48, kept_bytes=12, extents_x=(1, 3, 1), extents_y=(1, 6, 1))
    assert_memory(SPATIAL, [layer], peak=2 * ((128 + 12) / 2 + (24 + 24) * 4), states=76 * 12)


@pytest.mark.parametrize("run", [FILTER, CHANNEL])
def test_filter_and_channel_group(run: Run) -> None:
    assert_memory(run, peak=2 * 912, states=(36 + 4 + 650) * 12)


def test_pipeline() -> None:
    # conv, relu | fc; of 4 segments 3 wait: 400 3/4 + 912/4 and 32 3/4 + (32 + 296)/4 a sample
    assert_memory(PIPELINE, others=2 * 24, received=2 * 256, peak=2 * 82, states=7800)
    first = stage_memory(TOY, MACHINE, PIPELINE, range(2))
    assert first == {"others": 300, "received": 0, "peak": 228, "states": 912}


def test_the_fullest_stage_changes_with_the_batch() -> None:
    # 528 b + 912 against 362 b + 7800: from b = 42 on the first
    assert memory(TOY, MACHINE, replace(PIPELINE, b=41.0))["states"] == 7800
    assert memory(TOY, MACHINE, replace(PIPELINE, b=42.0))["states"] == 912


@pytest.mark.parametrize(("optimizer", "held"), [("none", 8), ("sgd", 12), ("adam", 16)])
def test_states(optimizer: Any, held: float) -> None:
    run = replace(SERIAL, optimizer=optimizer)
    for machine in (MACHINE, replace(MACHINE, a=2.0)):
        assert memory(TOY, machine, run)["states"] == 726 * held


def test_masks_have_their_bytes_in_every_precision() -> None:
    peak = memory(TOY, replace(MACHINE, a=2.0), SERIAL)["peak"]
    assert peak == 2 * ((32 + 64) * 2 + 16 + 128 * 2)


def test_a_cell_above_the_memory_is_forbidden() -> None:
    total = 2 * 912 + 8712 + 1000
    for capacity, forbidden in ((total - 1, True), (total, False)):
        machine = replace(MACHINE, memory_capacity=capacity)
        assert exceeds_memory(TOY, machine, SERIAL) is forbidden


# Recompute.


def test_recompute_keeps_all_where_checkpoints_are_more() -> None:
    # conv, relu | fc: inputs of (32 + 64) x 4 and 912 again
    again = replace(SERIAL, recompute=True)
    assert memory(TOY, MACHINE, again) == memory(TOY, MACHINE, SERIAL)


def test_recompute_checkpoints_runs() -> None:
    # 4 runs of 4: inputs of 64 x 4, 272 kept by each of a run's layers, two gradients
    deep, again = [RELU] * 16, replace(SERIAL, recompute=True)
    assert_memory(SERIAL, deep, peak=2 * (16 * 272 + 512), states=0)
    assert_memory(again, deep, others=2 * 4 * 256, peak=2 * (4 * 272 + 512), states=0)
    halved = replace(SPATIAL, recompute=True)
    assert_memory(halved, deep, others=4 * 256, peak=4 * 272 + 512, states=0)


def test_recompute_holds_the_largest_of_the_runs() -> None:
    # 3 | 3 | 2 layers; the second run's peak, from its own first layer: relu, conv, relu
    layers = [RELU, RELU, RELU, RELU, CONV, replace(RELU, y=1000), replace(RELU, x=5), RELU]
    peak = 272 + 128 + 272 + 1064 * 4
    again = replace(SERIAL, recompute=True)
    assert_memory(again, layers, others=2 * (64 + 64 + 5) * 4, peak=2 * peak, states=76 * 12)


def test_recompute_in_a_pipeline_keeps_a_segment() -> None:
    again = replace(PIPELINE, recompute=True)
    assert_memory(again, received=2 * 256, peak=2 * 82, states=7800)
    first = stage_memory(TOY, MACHINE, again, range(2))
    assert first == {"others": 128 * 3 / 4, "received": 0, "peak": 228, "states": 912}


def test_recompute_of_samples_that_nothing_kept_holds_more() -> None:
    # An activation first: the sample is no tensor of its backward pass, yet recompute starts there.
    run = replace(PIPELINE, b=100.0)
    layers = (replace(RELU, kept_items=0), replace(RELU, kept_items=0), replace(RELU, w=0))
    plain, again = (
        stage_memory(layers, MACHINE, replace(run, recompute=r), range(2)) for r in (False, True)
    )
    assert plain["others"] == 2 * 16 * 3 / 4
    assert again["others"] == 256 * 3 / 4


@pytest.mark.parametrize(
    ("count", "lengths"),
    [(1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2]), (7, [3, 3, 1]), (13, [4, 4, 4, 1])],
)
def test_checkpointed_runs(count: int, lengths: list[int]) -> None:
    assert [len(each) for each in checkpointed_runs(count)] == lengths


def test_there_are_always_as_many_runs_as_meant() -> None:
    for count in range(1, 2000):
        each = checkpointed_runs(count)
        assert len(each) == round(math.sqrt(count))
        assert [i for one in each for i in one] == list(range(count))


@limit_examples(25)
@given(problems)
def test_recompute_never_raises_memory(problem: tuple[list[Layer], Run]) -> None:
    """Where the first layer keeps the samples, as every convolution does."""
    network, run = problem
    first = replace(network[0], kept_items=network[0].kept_items + network[0].x)
    plain, again = (
        memory([first, *network[1:]], FAST, replace(run, recompute=r)) for r in (False, True)
    )
    assert again["total"] <= plain["total"]


# Along the PEs of a group.


@limit_examples(25)
@given(networks, runs(1), st.sampled_from(("spatial", "filter", "channel", "pipeline")))
def test_one_pe_of_any_group_is_no_group(network: list[Layer], run: Run, group: Any) -> None:
    alone = replace(run, group="none", p2=1, factors=(1, 1, 1))
    grouped = replace(alone, group=group, ends=(len(network),))
    assert memory(network, FAST, grouped) == memory(network, FAST, alone)


@limit_examples(25)
@given(networks, runs(1), st.sampled_from((1, 2, 4)))
def test_what_is_not_divided_is_whole(network: list[Layer], run: Run, p2: int) -> None:
    alone = replace(run, group="none", p2=1)
    points = [
        replace(each, extents_x=(1, 1, 1), extents_y=(1, 1, 1), divided=False) for each in network
    ]
    for group in ("spatial", "filter", "channel"):
        grouped: Any = {"group": group, "p2": p2, "factors": (1, 1, p2)}
        assert memory(points, FAST, replace(alone, **grouped)) == memory(points, FAST, alone)


@limit_examples(15)
@given(networks, runs(1), st.sampled_from(("filter", "channel")))
def test_memory_and_compute_never_rise_along_divisors(
    network: list[Layer], run: Run, group: Any
) -> None:
    along = [replace(run, group=group, p2=p2) for p2 in (1, 2, 4, 8, 24, 48)]
    assert_never_rises(network, along)
    for name in SAMPLED:  # gathered outputs are whole
        assert len({memory(network, FAST, each)[name] for each in along}) == 1


CHAIN = ((1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 3, 4), (4, 4, 3), (5, 4, 8))


@limit_examples(15)
@given(networks, runs(1), st.lists(st.permutations(range(3)), min_size=8, max_size=8))
def test_memory_of_cubes_in_a_spatial_group_never_rises(
    network: list[Layer], run: Run, orders: list[list[int]]
) -> None:
    """Whatever the dimension that is divided, where each factor is no less than one before."""
    cubes = [
        replace(each, extents_x=each.extents_x[:1] * 3, extents_y=each.extents_y[:1] * 3)
        for each in network
    ]
    turned: list[Any] = [tuple(f[i] for i in order) for f, order in zip(CHAIN, orders, strict=True)]
    assert_never_rises(
        cubes, [replace(run, group="spatial", p2=math.prod(f), factors=f) for f in turned]
    )


@limit_examples(15)
@given(networks, runs(1))
def test_memory_of_a_spatial_group_never_rises_along_its_factors(
    network: list[Layer], run: Run
) -> None:
    factors = [(1, 1, 1), (1, 1, 2), (1, 2, 2), (1, 2, 6), (2, 3, 6), (4, 4, 16)]
    assert_never_rises(
        network, [replace(run, group="spatial", p2=math.prod(f), factors=f) for f in factors]
    )


def test_a_larger_group_with_other_factors_may_hold_more() -> None:
    # By Table III 8 PEs are 2 x 2 x 2, 16 are 1 x 4 x 4: of two rows in each dimension a PE has two
    # points then, and the machine's placement takes others (tests/grids/inputs/test_factors.py).
    small = replace(RELU, extents_x=(2, 2, 2), extents_y=(2, 2, 2))
    cube = ((8, 8, 8), (8, 8, 8), (3, 3, 3))
    rows = [reference.Layer("cube", "conv", 1024, 2048, 216, 4, 1e5, 2, 4, *cube)]
    setup = reference.Setup("spatial", 1, 1, samples=1)
    held = {}
    for p2, expected in ((8, (2, 2, 2)), (16, (1, 4, 4))):
        assert reference.spatial_factors(rows, setup, p2) == expected
        run = replace(SPATIAL, p2=p2, factors=expected)
        held[p2] = memory([small], MACHINE, run)["peak"]
    assert held[16] == 2 * held[8]


def assert_never_rises(network: list[Layer], along: list[Run]) -> None:
    """Neither what a PE holds nor what it computes."""
    totals = [memory(network, FAST, run)["total"] for run in along]
    times = [sum(terms(network, FAST, run)[name] for name in COMPUTE) for run in along]
    for values in (totals, times):
        for before, after in pairwise(values):
            assert after <= before * (1 + 1e-12)


@limit_examples(25)
@given(problems)
def test_a_stage_holds_no_more_than_the_network_and_what_it_received(
    problem: tuple[list[Layer], Run],
) -> None:
    network, run = problem
    held = memory(network, FAST, run)
    assert held["total"] == pytest.approx(sum(held.values()) - held["total"])
    if not run.recompute:
        alone = memory(network, FAST, replace(run, group="none"))
        for stage in stages(network, run):
            parts = stage_memory(network, FAST, run, stage)
            assert run.b * (parts["others"] + parts["peak"]) <= alone["peak"] * (1 + 1e-12)
            assert parts["states"] <= alone["states"]
