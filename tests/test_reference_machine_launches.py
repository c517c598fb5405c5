"""The scalar machine oracle by hand: hosts that launch layers ahead of the device.

The toy of test_reference_machine.py takes X = 2 x 294.4 + 8.712 = 597.512 s a pass of two samples
on one PE, and has three layers. M(X, X) is 2^(1/4) X = 1.189207 X.
"""

from dataclasses import replace

import pytest
from machine_toys import CHANNEL, CONV, FC, FILTER, MACHINE, PIPELINE, RELU, SERIAL, SPATIAL, TOY
from reference_machine import terms
from reference_parts import (
    Layer,
    Machine,
    Run,
    launch_excess,
    profile_slowdown,
    smooth_maximum,
)

EQUAL = 2**0.25 - 1  # of a pass that launches take as long as
PASS = ("forward_backward", "pipeline_bubble", "pass_overhead", "launch_wait")
DEVICE = 597.512


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
