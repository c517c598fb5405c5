"""The scalar machine oracle by hand: layers and an iteration (docs/machine.md).

A convolution of 4x4 samples, its activation and a fully connected layer on a machine with round
numbers. With b samples and all layers on one PE:

    conv  x 32, y 64, w 72, bias 4, F 2304:   s = 3 x 2304 / (100 x 0.5) = 138.24
                                              f = 3 x 76 x 4 / 1000 = 0.912
    relu  x 64, y 64:                         s = 5 x 128 x 4 / 1000 = 2.56,  f = 0
    fc    x 64, y 10, w 640, bias 10, F 1280: s = 3 x 1280 / (100 x 0.25) = 153.6
                                              f = 3 x 650 x 4 / 1000 = 7.8

in all 294.4 s a sample and 8.712 s a pass, and for SGD 20 x 726 / 1000 = 14.52 s an iteration.
Hosts launch layers in no time. Products of parallelisms: test_reference_products_toy.py.
"""

from dataclasses import replace
from typing import Any

import pytest
from machine_toys import (
    CHANNEL,
    COMMUNICATION,
    CONV,
    FILTER,
    PIPELINE,
    SERIAL,
    SPATIAL,
    TOY,
    time_toy,
)
from machine_toys import MACHINE as TOY_MACHINE
from reference_parts import (
    Run,
    balanced_ends,
    own_part,
)

MACHINE = replace(TOY_MACHINE, layer_overhead=0.0)


def assert_terms(run: Run, **expected: float) -> None:
    """The toy's iteration has these terms and no others."""
    seconds = time_toy(MACHINE, run)
    assert seconds == pytest.approx(dict.fromkeys(seconds, 0.0) | expected)


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
        plain, again = (time_toy(MACHINE, replace(run, recompute=r)) for r in (False, True))
        for name in ("forward_backward", "pipeline_bubble", "pass_overhead"):
            assert again[name] == pytest.approx(plain[name] * 4 / 3)
        for name in ("weight_update", *COMMUNICATION):
            assert again[name] == plain[name]
