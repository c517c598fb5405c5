"""The scalar machine oracle by hand: overlap and stragglers.

The toy computes F = 2 x 294.4 = 588.8 s a pass on one PE. Its replicas exchange 1424 bytes, in
buckets of 356 as 2 messages, for two of its layers have weights: T = 2 (2 + 178) + 2 (4 + 356) =
1080 s on 4 PEs by two levels (ring 6 (4 + 178) = 1092), and the last message takes 540.
"""

import math
from dataclasses import replace

import pytest
from machine_toys import FILTER, MACHINE, PIPELINE, SERIAL, SPATIAL, TOY
from reference_exchange import gradient_messages
from reference_machine import (
    epoch,
    expected_largest,
    hidden_time,
    terms,
)
from reference_parts import Machine, Run

DATA = replace(SERIAL, p1=4)
BUCKETS = replace(MACHINE, bucket=356.0)


def hide(omega: float, machine: Machine = BUCKETS) -> Machine:
    return replace(machine, overlap=omega)


# Messages of gradients.


@pytest.mark.parametrize(
    ("bucket", "run", "messages"),
    [
        (math.inf, DATA, 1),
        (1e4, DATA, 1),
        (1000, DATA, 1.424),
        (356, DATA, 2),  # no more than layers with weights
        (1000, replace(FILTER, p1=2), 1.352),  # conv's 36 and fc's 640 weights on each PE
        (320, replace(PIPELINE, p1=2), 1),  # a stage has one such layer
        (1000, replace(PIPELINE, p1=2), 1),
    ],
)
def test_messages(bucket: float, run: Run, messages: float) -> None:
    assert gradient_messages(TOY, replace(MACHINE, bucket=bucket), run) == pytest.approx(messages)


# Gradients behind the backward pass.


@pytest.mark.parametrize(
    ("omega", "recompute", "window"),
    [
        (0.0, False, 0.0),
        (0.5, False, 0.5 * 0.5 * 588.8 * 2 / 3),  # of 2 buckets one is early
        (1.0, False, 0.5 * 588.8 * 2 / 3),
        (0.5, True, 0.5 * 0.5 * 588.8),  # 3/4 of 4/3: layers run again, then backward
    ],
)
def test_a_long_exchange_has_the_whole_window(omega: float, recompute: bool, window: float) -> None:
    run = replace(DATA, recompute=recompute)
    assert terms(TOY, hide(omega), run)["gradient_exchange"] == pytest.approx(1080 - window)
    assert hidden_time(TOY, hide(omega), run) == pytest.approx(2 * window)  # of 2 iterations


# Halos: F = 2 (69.12 + 1.28 + 153.6) = 448 s, H = 2 (1 + 16) + 2 (1 + 32) = 100 s; gradients of 2
# buckets in the node take 2 (2 + 1424/2/4) = 360 s.


@pytest.mark.parametrize(
    ("omega", "exposed", "gradients"),
    [
        (0.0, 100.0, 360.0),
        (0.1, 55.2, 360.0),  # halos have taken the whole window
        (0.5, 0.0, 360 - (224 - 100) / 3),  # half of 2/3 of what they left
        (1.0, 0.0, 360 - (448 - 100) / 3),
    ],
)
def test_a_window_is_used_once(omega: float, exposed: float, gradients: float) -> None:
    result = terms(TOY, hide(omega), SPATIAL)
    assert result["halo_exchange"] == pytest.approx(exposed, abs=1e-9)
    assert result["gradient_exchange"] == pytest.approx(gradients)
    hidden = 100 - exposed + 360 - gradients
    assert hidden_time(TOY, hide(omega), SPATIAL) == pytest.approx(8 * hidden)


# Pipelines: F = 2 x 153.6 = 307.2 s; of 4 segments 3 compute meanwhile. P = 1 + 128/4 = 33 s: two
# fill and drain, six are between.


@pytest.mark.parametrize(
    ("omega", "exposed"), [(0.0, 264.0), (0.5, 66 + 198 - 0.5 * 230.4), (1.0, 66.0)]
)
def test_sends_hide_but_for_fill_and_drain(omega: float, exposed: float) -> None:
    result = terms(TOY, hide(omega), replace(PIPELINE, accumulate=2))
    assert result["point_to_point"] == pytest.approx(2 * exposed)
    hidden = hidden_time(TOY, hide(omega), PIPELINE)
    assert hidden == pytest.approx(8 * (264 - exposed))


# Stragglers.


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 0.0), (2, 0.5895), (8, 1.4342), (1000, 3.2273)]
)
def test_the_largest_of_many(count: int, expected: float) -> None:
    # Phi(0.5895) = 13/18, Phi(1.4342) = 61/66, Phi(3.2273) = 7997/8002
    assert expected_largest(count) == pytest.approx(expected, abs=1e-4)
    below = (1 + math.erf(expected_largest(count) / math.sqrt(2))) / 2
    assert below == pytest.approx((8 * count - 3) / (8 * count + 2), abs=1e-12)


@pytest.mark.parametrize(("p1", "z"), [(1, 0.0), (2, 0.5895), (8, 1.4342)])
def test_all_wait_for_the_slowest(p1: int, z: float) -> None:
    machine = replace(MACHINE, jitter=0.1)
    run = replace(SERIAL, p1=p1, accumulate=3)
    # 3 passes of 588.8 + 8.712 s; not the update
    wait = terms(TOY, machine, run)["straggler_wait"]
    assert wait == pytest.approx(0.1 * z * 3 * 597.512, rel=1e-4)
    short = replace(run, samples=1.0, iterations="ceil")
    assert epoch(TOY, machine, short)["straggler_wait"] == pytest.approx(wait)  # of an iteration
