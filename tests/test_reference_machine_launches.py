"""The scalar machine oracle: hosts that launch layers ahead of the device, worked out by hand.

The toy of test_reference_machine.py takes X = 2 x 294.4 + 8.712 = 597.512 s a pass of two samples
on one PE, and has three layers. M(X, X) is 2^(1/4) X = 1.189207 X.
"""

from dataclasses import replace

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import FAST, machines, problems
from machine_toys import CHANNEL, CONV, FC, FILTER, MACHINE, PIPELINE, RELU, SERIAL, SPATIAL, TOY
from reference_machine import epoch, hidden_time, terms
from reference_parts import (
    Layer,
    Machine,
    Run,
    device_seconds,
    launch_excess,
    profile_slowdown,
    smooth_maximum,
)

EQUAL = 2**0.25 - 1  # of a pass that launches take as long as
PASS = ("forward_backward", "pipeline_bubble", "pass_overhead", "launch_wait")
DEVICE = 597.512

times = st.floats(1e-6, 1e6)


def launch(seconds: float) -> Machine:
    return replace(MACHINE, layer_overhead=seconds)


def pass_seconds(layers: tuple[Layer, ...], machine: Machine, run: Run) -> float:
    result = terms(layers, machine, run)
    return sum(result[name] for name in PASS)


# The smooth maximum.


@pytest.mark.parametrize(
    ("x", "y", "longest"),
    [
        (3, 4, 337**0.25),
        (1, 1, 1.1892071),
        (1, 2, 17**0.25),
        (5, 0, 5),
        (0, 5, 5),
        (0, 0, 0),
        (1e-40, 1e-40, 1.1892071e-40),
    ],
)
def test_a_maximum_without_a_kink(x: float, y: float, longest: float) -> None:
    assert smooth_maximum(x, y) == pytest.approx(longest, rel=1e-7, abs=0)
    assert x + launch_excess(x, y) == pytest.approx(longest, rel=1e-7, abs=0)


def test_no_digit_of_a_short_launch_is_lost() -> None:
    # x (1 + r^4)^(1/4) - x = x r^4 / 4 for small r
    assert launch_excess(1.0, 1e-4) == pytest.approx(2.5e-17, rel=1e-12, abs=0)
    assert launch_excess(1e3, 1e-3) == pytest.approx(2.5e-22, rel=1e-12, abs=0)


@given(times, times, times)
def test_it_is_no_shorter_than_either_and_a_fifth_longer_at_most(
    x: float, y: float, more: float
) -> None:
    longest = smooth_maximum(x, y)
    assert max(x, y) <= longest * (1 + 1e-12)
    assert longest <= (1 + EQUAL) * max(x, y) * (1 + 1e-12)
    assert longest == pytest.approx(smooth_maximum(y, x))
    assert launch_excess(x + more, y) <= launch_excess(x, y) * (1 + 1e-12)
    assert launch_excess(x, y + more) >= launch_excess(x, y)


# A pass.


@pytest.mark.parametrize(
    ("run", "device", "count"),
    [
        (SERIAL, DEVICE, 3),
        (replace(SERIAL, p1=50), DEVICE, 3),
        (SPATIAL, 2 * (138.24 / 2 + 2.56 / 2 + 153.6) + 8.712, 3),
        (FILTER, 2 * (138.24 / 2 + 2.56 + 153.6) + 8.28, 3),
        (CHANNEL, 2 * (138.24 / 2 + 2.56 + 153.6) + 8.28, 3),
        (replace(PIPELINE, p2=1, ends=(3,)), DEVICE, 3),
    ],
)
def test_launches_as_long_as_the_device(run: Run, device: float, count: int) -> None:
    result = terms(TOY, launch(device / count), run)
    assert result["launch_wait"] == pytest.approx(EQUAL * device)
    thrice = terms(TOY, launch(device / count), replace(run, accumulate=3))
    assert thrice["launch_wait"] == pytest.approx(3 * EQUAL * device)
    # r = 2: 17^(1/4) of what the device takes
    longer = pass_seconds(TOY, launch(2 * device / count), run)
    assert longer == pytest.approx(17**0.25 * device)


def test_each_step_of_a_pipeline_is_a_pass() -> None:
    # conv, relu | fc: 2/4 x 153.6 + 7.8 s, and two layers of the first stage; 5 steps
    device = 84.6
    result = terms(TOY, launch(device / 2), PIPELINE)
    assert result["launch_wait"] == pytest.approx(5 * EQUAL * device)
    assert pass_seconds(TOY, launch(device), PIPELINE) == pytest.approx(5 * 17**0.25 * device)
    # Of three stages each has one layer: 2/4 x 153.6 + 7.8 as before, 6 steps.
    run = replace(PIPELINE, p2=3, ends=(1, 2, 3))
    result = terms(TOY, launch(device), run)
    assert result["launch_wait"] == pytest.approx(6 * EQUAL * device)


def test_positions_of_a_sequence_are_launched_one_by_one() -> None:
    layers = (CONV, RELU, replace(FC, steps=5))
    result = terms(layers, launch(DEVICE / 7), SERIAL)
    assert result["launch_wait"] == pytest.approx(EQUAL * DEVICE)


def test_a_placed_groups_fullest_device_launches() -> None:
    # conv | relu, fc (of four steps): 5 launches; all are on the critical path
    layers = (CONV, RELU, replace(FC, steps=4))
    every = (0, 1, 2)
    run = Run(
        group="placement", p2=2, devices=(0, 1, 1), forward=every, backward=every, b=2.0, samples=8
    )
    result = terms(layers, launch(DEVICE / 5), run)
    assert result["launch_wait"] == pytest.approx(EQUAL * DEVICE)
    forward = replace(run, backward=())  # a third of it
    result = terms(layers, launch(DEVICE / 3 / 5), forward)
    assert result["launch_wait"] == pytest.approx(EQUAL * DEVICE / 3)
    # In two segments all of them twice, each with half of the samples, and 10 launches.
    twice = replace(run, segments=2, forward=2 * every, backward=2 * every)
    fixed = terms(layers, launch(0.0), run)["pass_overhead"]
    device = DEVICE + fixed
    result = terms(layers, launch(device / 10), twice)
    assert result["launch_wait"] == pytest.approx(EQUAL * device)
    alone = replace(run, p2=1, devices=(0, 0, 0))
    assert terms(layers, launch(DEVICE / 6), alone)["launch_wait"] == pytest.approx(EQUAL * DEVICE)


def test_recompute_launches_again() -> None:
    for run in (SERIAL, SPATIAL, FILTER, PIPELINE):
        plain, again = (
            terms(TOY, launch(100.0), replace(run, recompute=r))["launch_wait"]
            for r in (False, True)
        )
        assert again == pytest.approx(4 / 3 * plain)
        assert plain > 0


def test_faster_kernels_are_launched_no_faster() -> None:
    """Nor do slower ones, or a profile, make a launch slower."""
    for slowdown in (0.5, 1.0, 4.0):
        machine = replace(launch(200.0), slowdown=slowdown)
        seconds = pass_seconds(TOY, machine, SERIAL)
        assert seconds == pytest.approx(smooth_maximum(slowdown * DEVICE, 600))


# What waits for launches, and what does not.


def test_launches_are_no_other_term() -> None:
    for run in (SERIAL, SPATIAL, FILTER, CHANNEL, PIPELINE):
        run = replace(run, p1=2)
        alone, launched = (terms(TOY, launch(o), run) for o in (0.0, 100.0))
        assert launched == alone | {"launch_wait": launched["launch_wait"]}
        hiding = (replace(launch(o), overlap=0.5, bucket=356.0) for o in (0.0, 100.0))
        assert len({hidden_time(TOY, each, run) for each in hiding}) == 1


def test_the_slowest_pe_launches_more_slowly() -> None:
    run = replace(SERIAL, p1=2)  # Phi(0.5895) = 13/18
    machine = replace(launch(DEVICE / 3), jitter=0.1)
    wait = terms(TOY, machine, run)["straggler_wait"]
    assert wait == pytest.approx(0.1 * 0.5895 * (1 + EQUAL) * DEVICE, rel=1e-4)


def test_every_iteration_launches() -> None:
    run = replace(SERIAL, samples=5.0, iterations="ceil")  # of 2.5 batches
    result = epoch(TOY, launch(DEVICE / 3), run)
    assert result["launch_wait"] == pytest.approx(3 * EQUAL * DEVICE)


# Limits.


@limit_examples(25)
@given(problems, machines())
def test_without_launches_the_device_alone_counts(
    problem: tuple[list[Layer], Run], machine: Machine
) -> None:
    network, run = problem
    device = replace(machine, layer_overhead=0.0, jitter=0.0)
    launched = terms(network, replace(device, layer_overhead=1e-3), run)
    result = terms(network, device, run)
    assert result["launch_wait"] == 0
    same = {"launch_wait", "input_wait"}
    assert {n: launched[n] for n in launched if n not in same} == {
        n: result[n] for n in result if n not in same
    }


def test_many_samples_hide_launches_and_few_do_not() -> None:
    light = tuple(replace(layer, w=0.0, bias=0.0) for layer in TOY)
    for run in (SERIAL, SPATIAL, FILTER, CHANNEL):
        many, few = (replace(run, b=b) for b in (1e9, 1e-9))
        device = terms(light, launch(0.0), many)["forward_backward"]
        assert pass_seconds(light, launch(100.0), many) == pytest.approx(device, rel=1e-15)
        assert pass_seconds(light, launch(100.0), few) == pytest.approx(300, rel=1e-15)
    stages = replace(PIPELINE, b=1e-9)  # 5 steps of two layers
    assert pass_seconds(light, launch(100.0), stages) == pytest.approx(1000)


@pytest.mark.parametrize("p2", [2**20, 2**30])
@pytest.mark.parametrize("b", [1.0, 64.0])
def test_large_groups_take_the_time_of_their_launches(p2: int, b: float) -> None:
    layers = (CONV, replace(CONV, steps=3), CONV)
    for group in (FILTER, CHANNEL):
        # What is left of the device: whole inputs or outputs, and biases.
        fast = replace(launch(100.0), memory_bandwidth=1e6)
        seconds = pass_seconds(layers, fast, replace(group, p2=p2, b=b))
        assert seconds == pytest.approx(500, rel=1e-12)


@limit_examples(25)
@given(problems)
def test_a_pass_is_no_shorter_than_device_and_launches(
    problem: tuple[list[Layer], Run],
) -> None:
    network, run = problem
    run = replace(run, group="none", p2=1, accumulate=1, recompute=False)
    host = 1e-5 * len(network)
    result = terms(network, FAST, run)
    device = result["forward_backward"] + result["pass_overhead"]
    assert device + result["launch_wait"] == pytest.approx(smooth_maximum(device, host))
    assert result["launch_wait"] <= host * (1 + 1e-12)


# Profiles.


def test_a_profile_leaves_launches_to_the_host() -> None:
    # 3 launches of (1/2)^(1/4) of 2 x 448.134 s, so the device has as long
    measured = 2 * 448.134
    half = 0.5**0.25 * measured
    machine = launch(half / 3)
    factor = profile_slowdown(TOY, machine, t0=448.134, b0=2)
    assert factor == pytest.approx(half / DEVICE)
    slowed = replace(machine, slowdown=factor)
    assert pass_seconds(TOY, slowed, SERIAL) == pytest.approx(measured)
    again = profile_slowdown(TOY, slowed, t0=448.134, b0=2)
    assert again == pytest.approx(factor)  # of the system as it stands
    recurrent = (CONV, RELU, replace(FC, steps=5))
    assert profile_slowdown(recurrent, launch(half / 7), t0=448.134, b0=2) == pytest.approx(factor)


def test_a_profile_of_other_samples_grows_before_launches_are_left_out() -> None:
    small = [replace(layer, flops=layer.flops / 4) for layer in TOY]
    machine = launch(200.0)
    factor = profile_slowdown(TOY, machine, t0=448.134, b0=2)
    grown = profile_slowdown(TOY, machine, t0=448.134 / 4, b0=2, measured=small)
    assert grown == pytest.approx(factor)


@pytest.mark.parametrize(
    ("host", "share"),
    [
        (0.0, 1.0),
        (0.5, 0.9375**0.25),
        ((15 / 16) ** 0.25, 0.5),
        (0.99, 0.5),  # and no less, however long launches take
        (1.0, 0.5),
        (7.0, 0.5),
    ],
)
def test_half_of_a_pass_is_the_devices_at_least(host: float, share: float) -> None:
    assert device_seconds(8.0, 8 * host) == pytest.approx(8 * share)
    factor = profile_slowdown(TOY, launch(8 * host / 3), t0=4.0, b0=2)
    assert factor == pytest.approx(8 * share / DEVICE)


@limit_examples(25)
@given(problems, machines(), st.floats(0, 0.98), st.floats(1e-3, 1e3))
def test_a_profile_is_met_where_it_was_measured(
    problem: tuple[list[Layer], Run], machine: Machine, part: float, slower: float
) -> None:
    """Launches take up to 98 % of the measured pass; (15/16)^(1/4) is 0.984."""
    network, run = problem
    run = replace(run, group="none", p1=1, p2=1, accumulate=1, recompute=False)
    device = pass_seconds(tuple(network), replace(machine, layer_overhead=0.0), run)
    measured = slower * device
    machine = replace(machine, layer_overhead=part * measured / len(network))
    factor = profile_slowdown(network, machine, measured / run.b, run.b)
    slowed = pass_seconds(tuple(network), replace(machine, slowdown=factor), run)
    assert slowed == pytest.approx(measured)
