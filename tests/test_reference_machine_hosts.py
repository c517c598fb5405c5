"""The scalar machine oracle by hand: gradients and samples that pass through host memory.

The toy's nodes have 2 PEs (1 s, 4 B/s) and a link of 2 B/s between them (2 s); host memory has 8
B/s, so that no halo waits for it. Its 712 weights have gradients of 1424 bytes.
"""

import math
from dataclasses import replace

import pytest
from machine_toys import CHANNEL, CONV, FC, FILTER, MACHINE, RELU, SPATIAL, time_toy
from reference_parts import Layer, Machine, Run

HOSTS = replace(MACHINE, staging=(0.5, 8.0))
# Only start-ups, and what is large: 1000 bytes of it take 2 x 1000 / (1/2 x 2) = 2000 s.
LARGE = replace(
    MACHINE, levels=[(2, 1.0, math.inf), (8, 2.0, math.inf)], staging=(0.5, 2.0), large_message=0.5
)


def exchange(run: Run, machine: Machine = HOSTS) -> float:
    return time_toy(machine, run)["gradient_exchange"]


def weigh(run: Run) -> tuple[Layer, ...]:
    """The toy with 256 MiB and 1000 bytes of gradients that pass hosts."""
    of_conv = 72 if run.group == "spatial" else 0
    return CONV, RELU, replace(FC, w=2**27 + 500 - of_conv)


# The exchange.


@pytest.mark.parametrize(
    ("p1", "seconds"),
    [
        (1, 2 * (1 + 712 / 4)),  # inside a node: 358
        (2, 358 + 2 * (2 + 712 / 2)),  # one ring of nodes has the whole link
        (3, 358 + 4 * (2 + 1424 / 3 / 2)),
    ],
)
def test_a_spatial_group_reduces_in_nodes_and_across_them(p1: int, seconds: float) -> None:
    assert exchange(replace(SPATIAL, p1=p1)) == pytest.approx(seconds)


@pytest.mark.parametrize("group", [FILTER, CHANNEL])
def test_a_single_group_exchanges_what_it_does_not_divide(group: Run) -> None:
    # fc's 640 weights: 2 (1 + 640/4) = 322 s
    assert exchange(group, MACHINE) == 0
    assert exchange(group) == pytest.approx(322)
    assert exchange(replace(group, p2=4)) == pytest.approx(322 + 2 * (2 + 640 / 2))


# What is large.


@pytest.mark.parametrize("pes", [2, 4])
def test_a_flat_groups_large_gradients_are_slow_between_all_pes(pes: int) -> None:
    """4 PEs in one node or in two: 3/4 of what any number takes."""
    levels = [(pes, 0.0, math.inf), (2**20, 0.0, math.inf)]
    machine = replace(LARGE, pes_per_node=pes, levels=levels, host_jitter=3.0)
    run = replace(FILTER, p2=4)
    result = time_toy(machine, run, weigh(run))
    assert result["gradient_exchange"] == pytest.approx(1500, rel=1e-5)


@pytest.mark.parametrize(("nodes", "z"), [(1, 0.0), (2, 0.5895), (4, 1.0491)])
def test_leaders_of_nodes_wait_for_the_slowest_of_them(nodes: int, z: float) -> None:
    run = replace(SPATIAL, p1=nodes, b=2**21 + 10)
    result = time_toy(replace(LARGE, host_jitter=0.1), run, weigh(run))
    slow = 2000 * (1 - 1 / nodes) * (1 + 0.1 * z)
    assert result["gradient_exchange"] == pytest.approx(2 + 4 * (nodes - 1) + slow, rel=1e-5)
    assert result["sample_scatter"] == pytest.approx(1280 * (1 + 0.1 * z), rel=1e-5)


# Packing.


# Samples.


@pytest.mark.parametrize(
    ("run", "seconds"),
    [
        # 128 bytes a sample: 2^21 are 256 MiB, and 10 more take 1280 / (1/2 x 2) s a pass
        (replace(SPATIAL, b=2**21 + 10), 1280),
        (replace(SPATIAL, b=2**21 + 10, accumulate=3), 3840),
        (replace(SPATIAL, b=2**21 + 10, p1=100), 1280),
        (replace(SPATIAL, b=2**21), 0),
        (replace(FILTER, b=2**22), 0),
    ],
)
def test_a_spatial_group_hands_out_its_samples(run: Run, seconds: float) -> None:
    assert time_toy(LARGE, run)["sample_scatter"] == pytest.approx(seconds)
