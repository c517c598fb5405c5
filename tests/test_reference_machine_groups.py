"""The scalar machine oracle: what dividing layers costs beside, worked out by hand.

By filter and channel the toy exchanges its convolution's output, 2 x 4 x 64 = 512 bytes of two
samples, and its memory has 1000 B/s; in a spatial group the convolution has halos.
"""

import math
from dataclasses import replace

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import machines, problems
from machine_toys import CHANNEL, CONV, FC, FILTER, MACHINE, PIPELINE, RELU, SERIAL, SPATIAL, TOY
from reference_exchange import layer_waits
from reference_machine import epoch, expected_largest, terms
from reference_parts import Layer, Machine, Run

PARTS = replace(MACHINE, assembly=0.512, part_overhead=0.25)  # 512 bytes a second
NODES = replace(MACHINE, layer_wait=0.5)

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


# Groups that wait for each other at layers: z(2) = 0.5895, z(4) = 1.0491, of nodes of 2 PEs.


@pytest.mark.parametrize(
    ("run", "seconds"),
    [
        (FILTER, 0),  # one node
        (SPATIAL, 0),
        (replace(FILTER, p1=2), 0.5 * 2 * 0.5895),
        (replace(CHANNEL, p1=2), 0.5 * 2 * 0.5895),
        (replace(FILTER, p2=4), 0.5 * 2 * 0.5895),  # whoever is in them
        (replace(FILTER, p1=4), 0.5 * 2 * 1.0491),
        (replace(FILTER, p1=4, accumulate=3), 3 * 0.5 * 2 * 1.0491),
        (replace(FILTER, p1=4, recompute=True), 0.5 * 2 * 1.0491),
        (replace(SPATIAL, p1=4), 0.5 * 4 * 1.0491),
        (replace(SPATIAL, p2=3, factors=(1, 3, 1)), 0.5 * 4 * 0.3661),  # Phi(0.3661) = 9/14
        (replace(FILTER, p1=1000), 0.5 * 2 * 3.2273),
        (replace(FILTER, p1=8, p2=1), 0),
        (replace(SPATIAL, p1=8, p2=1, factors=(1, 1, 1)), 0),
        (replace(SERIAL, p1=8), 0),
        (replace(PIPELINE, p1=8), 0),
    ],
)
def test_groups_wait_at_each_layer(run: Run, seconds: float) -> None:
    result = terms(TOY, NODES, run)
    assert result["straggler_wait"] == pytest.approx(seconds, rel=2e-4)
    assert terms(TOY, MACHINE, run) == pytest.approx(result | {"straggler_wait": 0.0})


def test_waits_at_layers_come_beside_jitter() -> None:
    # 4 PEs in 2 nodes: of passes of 2 (138.24/2 + 2.56 + 153.6) + 9.78 s, and of one layer
    run = replace(FILTER, p1=2)
    wait = terms(TOY, replace(NODES, jitter=0.1), run)["straggler_wait"]
    assert wait == pytest.approx(0.1 * 1.0491 * 460.34 + 0.5895, rel=1e-4)


@pytest.mark.parametrize("run", [FILTER, CHANNEL])
def test_each_layer_that_is_exchanged_waits_twice(run: Run) -> None:
    assert layer_waits(TOY, run) == 2
    assert layer_waits((CONV, CONV, RELU, CONV, FC), run) == 6
    assert layer_waits((CONV, CONV), run) == 2
    assert layer_waits((RELU, FC), run) == 0


def test_each_layer_with_a_halo_waits_four_times() -> None:
    assert layer_waits(TOY, SPATIAL) == 4
    pointwise = replace(CONV, kernel=(1, 1, 1))
    apart = replace(CONV, kernel=(1, 2, 2), stride=(1, 2, 2))
    across = replace(CONV, kernel=(1, 1, 3))  # along the dimension that is not split
    whole = replace(CONV, divided=False)
    assert layer_waits((CONV, pointwise, apart, across, whole, CONV), SPATIAL) == 8
    assert layer_waits((across,), replace(SPATIAL, factors=(1, 1, 2))) == 4


def test_a_part_of_a_node_waits_for_a_part() -> None:
    # Phi(0.3661) = (1.5 - 3/8) / (1.5 + 1/4) = 9/14
    below = (1 + math.erf(expected_largest(1.5) / math.sqrt(2))) / 2
    assert below == pytest.approx(9 / 14)
    assert expected_largest(1.0) == 0


@limit_examples(25)
@given(problems, machines(), st.floats(0, 10))
def test_a_single_node_waits_at_no_layer(
    problem: tuple[list[Layer], Run], machine: Machine, wait: float
) -> None:
    network, run = problem
    node = replace(machine, pes_per_node=run.p)
    waiting = replace(node, layer_wait=wait)
    assert terms(network, waiting, run) == terms(network, node, run)
