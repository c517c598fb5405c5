"""The scalar machine oracle by hand: layers and an iteration (docs/machine.md).

A convolution of 4x4 samples, its activation and a fully connected layer on a machine with round
numbers. With b samples and all layers on one PE:

    conv  x 32, y 64, w 72, bias 4, F 2304:   s = 3 x 2304 / (100 x 0.5) = 138.24
                                              f = 3 x 76 x 4 / 1000 = 0.912
    relu  x 64, y 64:                         s = 5 x 128 x 4 / 1000 = 2.56,  f = 0
    fc    x 64, y 10, w 640, bias 10, F 1280: s = 3 x 1280 / (100 x 0.25) = 153.6
                                              f = 3 x 650 x 4 / 1000 = 7.8

in all 294.4 s a sample and 8.712 s a pass, and for SGD 20 x 726 / 1000 = 14.52 s an iteration.
Hosts launch layers in no time; in some they do, see test_reference_machine_launches.py.
"""

from dataclasses import replace
from typing import Any

import pytest
from machine_toys import (
    CHANNEL,
    COMMUNICATION,
    COMPUTE,
    CONV,
    FC,
    FILTER,
    PIPELINE,
    RELU,
    SERIAL,
    SPATIAL,
    TOY,
    WAITS,
)
from machine_toys import MACHINE as TOY_MACHINE
from reference_machine import terms
from reference_parts import (
    Machine,
    Run,
    balanced_ends,
    layer_pass,
    own_part,
    profile_slowdown,
    update_seconds,
)

MACHINE = replace(TOY_MACHINE, layer_overhead=0.0)


def assert_terms(run: Run, machine: Machine = MACHINE, **expected: float) -> None:
    """The toy's iteration has these terms and no others."""
    everything = dict.fromkeys((*COMPUTE, *COMMUNICATION, *WAITS), 0.0) | expected
    assert terms(TOY, machine, run) == pytest.approx(everything)


# A layer.


def test_layers_bound_by_arithmetic() -> None:
    assert layer_pass(CONV, MACHINE) == pytest.approx((138.24, 0.912))
    assert layer_pass(FC, MACHINE) == pytest.approx((153.6, 7.8))


def test_an_elementwise_layer_passes_over_its_items() -> None:
    assert layer_pass(RELU, MACHINE) == pytest.approx((2.56, 0))


def test_a_layer_bound_by_memory() -> None:
    # 3 x (32 + 64) x 4 / 1000; weights as before
    assert layer_pass(CONV, replace(MACHINE, peak=1e9)) == pytest.approx((1.152, 0.912))


def test_steps_in_a_row_read_their_weights_again() -> None:
    # 3 x (72 r + 4) x 4 / 1000
    recurrent = replace(CONV, steps=5, reads=11 / 3)
    assert layer_pass(recurrent, MACHINE) == pytest.approx((138.24, 3.216))
    # 4 filters fill a sixth of a tile of 24: 6 x 138.24 = 829.44; as long as with 23/8 samples
    # more, in two of three passes.
    few = replace(MACHINE, tile_filters=24.0)
    assert layer_pass(recurrent, few) == pytest.approx((829.44, 3.216 + 2 * 23 / 8 * 829.44 / 3))
    gates = replace(RELU, steps=5)
    assert layer_pass(gates, few) == pytest.approx((2.56, 0))


def test_few_channels_reach_less_of_the_peak() -> None:
    # Windows of 2 x 3 x 3 = 18: 18/20; of 64 in 64/66
    narrow = replace(MACHINE, half_channels=2.0)
    assert layer_pass(CONV, narrow) == pytest.approx((138.24 / 0.9, 0.912))
    assert layer_pass(FC, narrow) == pytest.approx((153.6 * 66 / 64, 7.8))
    assert layer_pass(RELU, narrow) == layer_pass(RELU, MACHINE)
    bound = replace(narrow, peak=1e9)  # by memory: no arithmetic is waited for
    assert layer_pass(CONV, bound) == pytest.approx((1.152, 0.912))


def test_tiles_are_computed_whole() -> None:
    # 4 filters in tiles of 3 take as long as 6, in one of 128 as 128; 10 in tiles of 8 as 16
    for tile, whole in ((1, 4), (2, 4), (3, 6), (4, 4), (128, 128)):
        seconds, fixed = layer_pass(CONV, replace(MACHINE, tile_filters=tile))
        assert (seconds, fixed) == pytest.approx((138.24 * whole / 4, 0.912))
    eights = replace(MACHINE, tile_filters=8.0)
    assert layer_pass(FC, eights)[0] == pytest.approx(153.6 * 16 / 10)
    # Of volumes a tile has half as many: 4.
    deep = replace(CONV, kind="conv3d", kernel=(3, 3, 3))
    assert layer_pass(deep, eights) == layer_pass(deep, MACHINE)
    assert layer_pass(RELU, eights) == layer_pass(RELU, MACHINE)


def test_layouts_move_what_dense_convolutions_take_and_make() -> None:
    # 1.152 s of traffic, once more in each pass; neither arithmetic nor other layers move.
    turned, grouped = replace(MACHINE, layout_passes=6.0), replace(CONV, groups=2)
    assert layer_pass(CONV, turned)[0] - layer_pass(CONV, MACHINE)[0] == pytest.approx(6 * 0.384)
    for layer in (FC, RELU, grouped):
        assert layer_pass(layer, turned) == layer_pass(layer, MACHINE)


def test_winograd_multiplies_less_in_windows_of_3_x_3_and_stride_1() -> None:
    fewer = replace(MACHINE, winograd=1.6)
    assert layer_pass(CONV, fewer) == pytest.approx((138.24 / 1.6, 0.912))
    others = (
        replace(CONV, kernel=(1, 1, 1)),
        replace(CONV, kernel=(1, 3, 1)),
        replace(CONV, kernel=(1, 5, 5)),
        replace(CONV, stride=(1, 2, 2)),
        replace(CONV, stride=(1, 1, 2)),
        replace(CONV, kind="conv3d", kernel=(3, 3, 3)),
        replace(CONV, groups=2.0),
        RELU,
        FC,
    )
    for layer in others:
        assert layer_pass(layer, fewer) == layer_pass(layer, MACHINE)
    bound = replace(fewer, peak=1e9)  # by memory: items are moved as often
    assert layer_pass(CONV, bound) == pytest.approx((1.152, 0.912))


def test_a_grouped_convolution_fetches_its_windows() -> None:
    """2,304 FLOPs for groups of 2 filters are 576 items of 4 bytes, at a hundredth of 1,000 B/s."""
    slow = replace(MACHINE, window_fetch=0.01)
    grouped = replace(CONV, groups=2.0)
    assert layer_pass(grouped, slow) == pytest.approx((3 * 576 * 4 / 10, 0.912))
    assert layer_pass(grouped, MACHINE) == layer_pass(CONV, slow) == layer_pass(CONV, MACHINE)
    # Of two PEs by filter each has a group, and reads its channel alone.
    part = own_part(grouped, FILTER)
    assert (part.x, part.y, part.w) == (16, 32, 36)
    assert layer_pass(part, slow)[0] == pytest.approx(3 * 288 * 4 / 10)
    assert own_part(CONV, FILTER).x == 32


@pytest.mark.parametrize(("optimizer", "moved"), [("none", 0), ("sgd", 20), ("adam", 28)])
def test_update(optimizer: str, moved: float) -> None:
    halves = replace(MACHINE, a=2.0)
    for machine in (MACHINE, halves):
        assert update_seconds(CONV, machine, optimizer) == pytest.approx(moved * 76 / 1000)


def test_a_profile_is_met_where_it_was_measured() -> None:
    # T(2) = 2 x 294.4 + 8.712 = 597.512, measured: 2 x 448.134
    factor = profile_slowdown(TOY, MACHINE, t0=448.134, b0=2)
    assert factor == pytest.approx(1.5)
    slowed = terms(TOY, replace(MACHINE, slowdown=factor), SERIAL)
    assert slowed["forward_backward"] + slowed["pass_overhead"] == pytest.approx(2 * 448.134)
    assert slowed["weight_update"] == pytest.approx(14.52)
    again = profile_slowdown(TOY, replace(MACHINE, slowdown=7.0), t0=448.134, b0=2)
    assert again == pytest.approx(1.5)  # of the system as it stands


# The table's rows.


def test_one_pe() -> None:
    assert_terms(SERIAL, forward_backward=2 * 294.4, pass_overhead=8.712, weight_update=14.52)


def test_replicas() -> None:
    # 2 x 712 bytes on 4 PEs in 2 nodes. Ring: 6 (2 + 1424/4 / 2) = 1080; tree: 2 (1 + 2 + 1424/2)
    # = 1430; two levels, of which the upper one has two rings on a link: 2 (1 + 1424/2 / 4) +
    # 2 (2 + 1424/4) = 358 + 716
    assert_terms(
        replace(SERIAL, p1=4),
        forward_backward=2 * 294.4,
        pass_overhead=8.712,
        weight_update=14.52,
        gradient_exchange=1074,
    )


def test_passes_are_paid_and_the_gradient_exchange_is_not() -> None:
    assert_terms(
        replace(SERIAL, p1=4, accumulate=3),
        forward_backward=3 * 2 * 294.4,
        pass_overhead=3 * 8.712,
        weight_update=14.52,
        gradient_exchange=1074,
    )


def test_spatial_group() -> None:
    # conv and relu in two halves, fc whole; halos of 2 x 4 x C 4 bytes and the like over 1 s + m/4
    halos = 2 * (1 + 2 * 4 * 8 / 4) + 2 * (1 + 2 * 4 * 16 / 4)
    assert_terms(
        SPATIAL,
        forward_backward=2 * (138.24 / 2 + 2.56 / 2 + 153.6),
        pass_overhead=8.712,
        weight_update=14.52,
        gradient_exchange=2 * (1 + 1424 / 2 / 4),
        halo_exchange=halos,
        split_gather=2 * (1 + 2 * 4 * 64 / 2 / 4),
    )


@pytest.mark.parametrize(
    ("factors", "x", "y", "rows_in", "rows_out"),
    [
        ((1, 4, 2), (1, 8, 8), (1, 8, 8), 1 / 8, 1 / 8),
        ((1, 3, 2), (1, 8, 8), (1, 7, 7), 3 / 8 / 2, 3 / 7 * 4 / 7),  # the fullest PE's
        ((1, 4, 2), (1, 8, 8), (1, 3, 8), 1 / 8, 1 / 3 / 2),  # as far as it has rows
        ((1, 4, 2), (1, 2, 8), (1, 3, 1), 1 / 4, 1 / 3),
        ((2, 4, 2), (1, 1, 1), (1, 1, 1), 1, 1),
        ((2, 2, 2), (4, 4, 4), (4, 4, 4), 1 / 8, 1 / 8),
    ],
)
def test_rows_of_a_spatial_group(
    factors: Any, x: Any, y: Any, rows_in: float, rows_out: float
) -> None:
    layer = replace(CONV, extents_x=x, extents_y=y)
    own = own_part(layer, replace(SPATIAL, factors=factors))
    assert (own.x, own.y, own.flops) == pytest.approx(
        (32 * rows_in, 64 * rows_out, 2304 * rows_out)
    )
    assert (own.w, own.bias) == (72, 4)


@pytest.mark.parametrize("run", [FILTER, CHANNEL])
def test_filter_and_channel_group(run: Run) -> None:
    # conv's weights in two halves: f = 3 (36 + 4) 4 / 1000 = 0.48, not 0.912
    gather = 1 + 2 * 4 * 64 / 2 / 4  # or a reduce-scatter, and half of an all-reduce
    assert_terms(
        run,
        forward_backward=2 * (138.24 / 2 + 2.56 + 153.6),
        pass_overhead=0.48 + 7.8,
        weight_update=20 * (36 + 4 + 650) / 1000,
        layer_collectives=(2 if run.group == "filter" else 3) * gather,
    )


def test_pipeline() -> None:
    # conv, relu | fc: s 140.8 | 153.6, f 0.912 | 7.8, u 1.52 | 13; S = 4
    assert balanced_ends(TOY, MACHINE, 2) == (2, 3)
    assert_terms(
        PIPELINE,
        forward_backward=2 * 153.6,
        pipeline_bubble=2 * 153.6 / 4,
        pass_overhead=5 * 7.8,
        weight_update=13.0,
        point_to_point=2 * 4 * (1 + 2 / 4 * 4 * 64 / 4),
    )


def test_recompute_runs_forward_twice_and_sends_nothing_again() -> None:
    for run in (SERIAL, SPATIAL, FILTER, PIPELINE):
        plain, again = (terms(TOY, MACHINE, replace(run, recompute=r)) for r in (False, True))
        for name in ("forward_backward", "pipeline_bubble", "pass_overhead"):
            assert again[name] == pytest.approx(plain[name] * 4 / 3)
        for name in ("weight_update", *COMMUNICATION):
            assert again[name] == plain[name]
