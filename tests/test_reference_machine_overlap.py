"""The scalar machine oracle: what computing hides, stragglers, the size of a machine, by hand.

The toy computes F = 2 x 294.4 = 588.8 s a pass on one PE. Its replicas exchange 1424 bytes, in
buckets of 356 as 2 messages, for two of its layers have weights: T = 2 (2 + 178) + 2 (4 + 356) =
1080 s on 4 PEs by two levels (ring 6 (4 + 178) = 1092), and the last message takes 540.
"""

import math
from dataclasses import replace

import pytest
from machine_toys import CONV, FC, FILTER, MACHINE, PIPELINE, RELU, SERIAL, SPATIAL, TOY
from reference_exchange import gradient_messages
from reference_machine import (
    default_group,
    epoch,
    expected_largest,
    hidden_time,
    machine_too_small,
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


def test_each_message_of_gradients_has_its_start_ups() -> None:
    assert terms(TOY, BUCKETS, DATA)["gradient_exchange"] == pytest.approx(1080)
    # 2 (1.424 + 178) + 2 (2.848 + 356)
    some = terms(TOY, replace(MACHINE, bucket=1000.0), DATA)["gradient_exchange"]
    assert some == pytest.approx(1076.544)


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


def test_a_short_exchange_waits_for_its_last_message() -> None:
    # 2 (2 + 1.78) + 2 (4 + 3.56) = 22.68
    fast = replace(BUCKETS, levels=[(2, 1.0, 400.0), (8, 2.0, 200.0)])
    assert terms(TOY, hide(0.5, fast), DATA)["gradient_exchange"] == pytest.approx(11.34)
    assert hidden_time(TOY, hide(0.5, fast), DATA) == pytest.approx(2 * 11.34)


def test_one_message_hides_nothing() -> None:
    assert terms(TOY, hide(1.0, MACHINE), DATA) == terms(TOY, MACHINE, DATA)
    assert hidden_time(TOY, hide(1.0, MACHINE), DATA) == 0


def test_of_many_passes_the_last_one_hides_gradients() -> None:
    run = replace(DATA, accumulate=4, samples=48.0)
    window = 0.5 * 588.8 * 2 / 3
    assert terms(TOY, hide(1.0), run)["gradient_exchange"] == pytest.approx(1080 - window)
    assert hidden_time(TOY, hide(1.0), run) == pytest.approx(1.5 * window)  # of 1.5 iterations
    whole = replace(run, iterations="ceil")
    assert hidden_time(TOY, hide(1.0), whole) == pytest.approx(2 * window)


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


def test_every_pass_hides_its_halos() -> None:
    run = replace(SPATIAL, accumulate=4)
    result = terms(TOY, hide(0.1), run)
    assert result["halo_exchange"] == pytest.approx(4 * 55.2)
    assert result["gradient_exchange"] == pytest.approx(360)
    assert hidden_time(TOY, hide(0.1), run) == pytest.approx(2 * 4 * 44.8)


def test_what_waits_for_the_next_layer_is_not_hidden() -> None:
    for run in (FILTER, SPATIAL):
        plain, hiding = terms(TOY, MACHINE, run), terms(TOY, hide(1.0), run)
        for name in ("layer_collectives", "split_gather"):
            assert hiding[name] == plain[name]


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


def test_one_segment_hides_no_sends() -> None:
    run = replace(PIPELINE, segments=1)
    assert terms(TOY, hide(1.0), run)["point_to_point"] == pytest.approx(2 * (1 + 128))


def test_a_pipelines_gradients_have_its_last_segment() -> None:
    # Two fc: F = 614.4 s, m = 2560 bytes in 2 messages on a link of two rings: 2 (4 + 1280) s.
    layers = (CONV, RELU, FC, FC)
    run = replace(PIPELINE, p1=2, ends=(2, 4))
    machine = replace(MACHINE, bucket=1280.0, overlap=0.5)
    result = terms(layers, machine, run)
    assert result["gradient_exchange"] == pytest.approx(2568 - 0.5 * 0.5 * 2 / 3 * 614.4 / 4)
    assert result["point_to_point"] == pytest.approx(66)
    assert hidden_time(layers, machine, run) == pytest.approx(4 * (25.6 + 198))


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


def test_pipelines_wait_in_their_bubble_too() -> None:
    # (307.2 + 76.8) + 5 x 7.8
    wait = terms(TOY, replace(MACHINE, jitter=0.1), PIPELINE)["straggler_wait"]
    assert wait == pytest.approx(0.1 * 0.5895 * (384 + 39), rel=1e-4)


def test_input_is_read_while_pes_wait() -> None:
    slow = replace(hide(0.5), jitter=0.1, input_rate=1e-4)
    for run, seconds in ((DATA, 4e4), (SPATIAL, 2e4), (PIPELINE, 2e4)):
        assert sum(terms(TOY, slow, run).values()) == pytest.approx(seconds)
    busy = sum(terms(TOY, replace(slow, input_rate=math.inf), DATA).values())
    passes = 597.512 * (1 + 0.1 * 1.0491)  # Phi(1.0491) = 29/34
    assert busy == pytest.approx(passes + 14.52 + 1080 - 0.25 * 588.8 * 2 / 3, rel=1e-5)


# The size of a machine.


def test_a_machine_has_a_size() -> None:
    small = replace(MACHINE, size=8)
    assert not machine_too_small(small, replace(SERIAL, p1=8))
    assert not machine_too_small(small, replace(SPATIAL, p1=4))
    assert machine_too_small(small, replace(SERIAL, p1=9))
    assert machine_too_small(small, replace(SPATIAL, p1=5))
    assert not machine_too_small(MACHINE, replace(SERIAL, p1=10**9))


def test_a_hybrid_has_a_node_or_all_pes() -> None:
    assert [default_group(MACHINE, p) for p in (1, 2, 8)] == [1, 2, 2]
