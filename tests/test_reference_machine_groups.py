"""The scalar machine oracle: what dividing layers costs beside, worked out by hand.

By filter and channel the toy exchanges its convolution's output, 2 x 4 x 64 = 512 bytes of two
samples, and its memory has 1000 B/s.
"""

import math
from dataclasses import replace

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import machines, problems
from machine_toys import CHANNEL, CONV, FILTER, MACHINE, PIPELINE, RELU, SERIAL, SPATIAL, TOY
from reference_machine import epoch, expected_largest, terms
from reference_parts import Layer, Machine, Run

PARTS = replace(MACHINE, assembly=0.512, part_overhead=0.25)  # 512 bytes a second

# Outputs that are put together.


@pytest.mark.parametrize(
    ("run", "seconds"),
    [
        (FILTER, 2 * 512 / 2 / 512 + 2 * 0.25),  # half is a peer's, there and back; one peer
        (CHANNEL, 512 / 2 / 512),
        (replace(FILTER, p2=4), 2 * 3 / 4 + 6 * 0.25),
        (replace(CHANNEL, p2=4), 3 / 4),
        (replace(FILTER, p2=2**20), 2 * (1 - 2**-20) + 2 * (2**20 - 1) * 0.25),
        (replace(CHANNEL, p2=2**20), 1 - 2**-20),  # all of it
        (replace(FILTER, p2=1), 0),
        (replace(CHANNEL, p2=1), 0),
        (replace(FILTER, accumulate=3), 3 * 1.5),
        (replace(FILTER, b=6.0), 3 * 1 + 0.5),  # a part has its time whatever its size
        (replace(FILTER, p1=50), 1.5),
        (replace(FILTER, recompute=True), 1.5),
        (replace(CHANNEL, accumulate=3), 1.5),
        (SERIAL, 0),
        (SPATIAL, 0),
        (PIPELINE, 0),
    ],
)
def test_outputs_are_put_together(run: Run, seconds: float) -> None:
    result = terms(TOY, PARTS, run)
    assert result["split_overhead"] == pytest.approx(seconds)
    assert terms(TOY, MACHINE, run) == pytest.approx(result | {"split_overhead": 0.0})


@pytest.mark.parametrize(("run", "seconds"), [(FILTER, 2 * 1.5 + 0.5), (CHANNEL, 1.5)])
def test_layers_that_a_group_exchanges(run: Run, seconds: float) -> None:
    # 64 and 128 items; what is not split, and the network's last output, no one gathers
    layers = (CONV, RELU, replace(CONV, y=128), CONV)
    assert terms(layers, PARTS, run)["split_overhead"] == pytest.approx(
        seconds + (0.5 if run.group == "filter" else 0)
    )
    assert terms((CONV,), PARTS, run)["split_overhead"] == 0


def test_halves_are_put_together_in_half_the_time() -> None:
    assert terms(TOY, replace(PARTS, a=2.0), FILTER)["split_overhead"] == pytest.approx(0.5 + 0.5)


def test_no_other_factor_stretches_it() -> None:
    slow = replace(PARTS, slowdown=3.0, efficiency=0.1, elementwise_passes=9.0, jitter=0.1)
    result = terms(TOY, slow, FILTER)
    assert result["split_overhead"] == pytest.approx(1.5)
    plain = terms(TOY, replace(slow, assembly=math.inf, part_overhead=0.0), FILTER)
    assert result["straggler_wait"] == plain["straggler_wait"]
    ceil = replace(FILTER, b=3.0, samples=4.0, iterations="ceil")
    assert epoch(TOY, PARTS, ceil)["split_overhead"] == pytest.approx(2 * (1.5 + 0.5))


@limit_examples(25)
@given(problems, machines(), st.integers(2, 64))
def test_by_channel_outputs_are_put_together_once(
    problem: tuple[list[Layer], Run], machine: Machine, p2: int
) -> None:
    network, run = problem
    machine = replace(machine, part_overhead=0.0)
    filtered, channelled = (
        terms(network, machine, replace(run, group=group, p2=p2))["split_overhead"]
        for group in (FILTER.group, CHANNEL.group)
    )
    assert filtered == pytest.approx(2 * channelled)


# A part of a node.


def test_a_part_of_a_node_waits_for_a_part() -> None:
    # Phi(0.3661) = (1.5 - 3/8) / (1.5 + 1/4) = 9/14
    below = (1 + math.erf(expected_largest(1.5) / math.sqrt(2))) / 2
    assert below == pytest.approx(9 / 14)
    assert expected_largest(1.0) == 0
