"""Collectives as libraries run them, by hand: 1,024 bytes on the network of `racks`."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from racks import RACKS, make_ring

from paradl.kernels.machine.library_collectives import (
    gather_costs,
    reduce_costs,
    time_fastest,
    whole_costs,
)
from paradl.kernels.machine.network import find_path
from paradl.kernels.options import Algorithm

pytestmark = pytest.mark.usefixtures("in_numpy")

ALGORITHMS: tuple[Algorithm, ...] = ("ring", "tree", "two-level")


def time(costs, m: float = 1024.0, messages: float = 1.0) -> float:
    return float(time_fastest(costs, np.float64(m), np.float64(messages)))


def reduce_seconds(ring, algorithm: Algorithm, m: float = 1024.0, messages: float = 1.0) -> float:
    return time(reduce_costs(RACKS, ring, algorithm), m, messages)


def gather_seconds(ring, algorithm: Algorithm, m: float = 1024.0, messages: float = 1.0) -> float:
    return time(gather_costs(RACKS, ring, algorithm), m, messages)


@pytest.mark.parametrize(
    ("messages", "around", "tree", "levels"),
    [
        # 16 PEs in 4 nodes. 30 (2 + 64/8); 2 (3 x 1 + 2 x 2 + 1024/8);
        # 6 (1 + 256/16) + 6 (2 + 64/2), where a node's four have 2 B/s each
        (1, 300, 270, 102 + 204),
        # 30 (6 + 64/8); 2 (3 x 7 + 128); 6 (3 + 16) + 6 (6 + 32)
        (3, 420, 298, 114 + 228),
    ],
)
def test_of_four_nodes(messages, around, tree, levels) -> None:
    ring = make_ring(16, 16, 1)
    for algorithm, seconds in zip(ALGORITHMS, (around, tree, levels), strict=True):
        assert reduce_seconds(ring, algorithm, messages=messages) == pytest.approx(seconds)
    for algorithm, seconds in zip(ALGORITHMS, (around, around, levels), strict=True):
        # A gather has no tree, and is half of a reduction.
        assert gather_seconds(ring, algorithm, messages=messages) == pytest.approx(seconds / 2)


def test_in_one_node_two_levels_are_a_ring_and_a_tree_is_a_chain() -> None:
    ring = make_ring(64, 4, 1)
    around = 6 * (1 + 256 / 16)
    assert reduce_seconds(ring, "ring") == reduce_seconds(ring, "two-level") == around
    assert reduce_seconds(ring, "tree") == 2 * (3 + 1024 / 16)
    assert reduce_seconds(ring, "auto") == around


def test_where_no_two_share_a_node_two_levels_are_a_ring() -> None:
    """16 rings of 4 at stride 4 of 64 PEs: 1 B/s each."""
    ring = make_ring(64, 16, 4)
    around = 30 * (4 + 64)
    assert reduce_seconds(ring, "ring") == reduce_seconds(ring, "two-level") == around
    assert reduce_seconds(ring, "tree") == 2 * (4 * 4 + 1024)


def test_a_ring_across_a_border_shares_no_node_and_its_tree_has_one_more() -> None:
    """6 of 12 PEs, two rings of which leave a node: 4 B/s each."""
    ring = make_ring(12, 6, 1)
    assert reduce_seconds(ring, "ring") == pytest.approx(10 * (2 + 1024 / 6 / 4))
    # Six nodes of one PE each, whose 1 x 6 rings have a stride of 1.
    assert reduce_seconds(ring, "two-level") == reduce_seconds(ring, "ring")
    assert reduce_seconds(ring, "tree") == pytest.approx(2 * (3 * 1 + 2 * 2 + 1024 / 4))


def test_what_may_be_chosen() -> None:
    ring = make_ring(16, 16, 1)
    counts = {
        value: (len(gather_costs(RACKS, ring, value)), len(reduce_costs(RACKS, ring, value)))
        for value in ("ring", "tree", "two-level", "auto")
    }
    assert counts == {"ring": (1, 1), "tree": (1, 1), "two-level": (1, 1), "auto": (2, 3)}
    assert set(counts) | {"best"} == set(get_args(Algorithm))
    assert whole_costs(RACKS, ring, "ring") == ()


@pytest.mark.parametrize("m", [8.0, 1024.0, 65536.0])
def test_of_measured_lines_the_fastest_counts(m) -> None:
    slow, quick = (np.full(len(RACKS.span), factor) for factor in (2.0, 0.5))
    lines = ((slow, slow), (quick, quick))
    measured = replace(RACKS, measured={"all_reduce": lines, "all_gather": lines})
    # In a node: latency 1, bandwidth 16.
    node = make_ring(4, 4, 1)
    expected = min(3 * (2 + m / 4 / 32), 3 * (0.5 + m / 4 / 8))
    assert time(gather_costs(measured, node, "auto"), m) == pytest.approx(expected)
    assert time(reduce_costs(measured, node, "auto"), m) == pytest.approx(2 * expected)
    # In four nodes of a rack, latency 2 and 2 links of 4: 2 (3 x 1 + 2 x 2) of a tree, or
    # 3 x 1 + 3 x 2 in two levels, and 15/16 m of a ring.
    nodes, ring = make_ring(16, 16, 1), 15 / 16 * m / 8
    expected = min(2 * 9 + ring / 2, 9 / 2 + ring * 2)
    assert time(gather_costs(measured, nodes, "auto"), m) == pytest.approx(expected)
    expected = min(2 * 14 + ring, 14 / 2 + 4 * ring)
    assert time(reduce_costs(measured, nodes, "auto"), m) == pytest.approx(expected)


@pytest.mark.parametrize("m", [1.0, 1024.0, 65536.0])
def test_switches_of_a_node_sum_what_each_pe_sends_once(m) -> None:
    """A PE's link, 16 B/s, carries m and, of an all-reduce, m/4 more; between nodes 2 B/s."""
    switches = replace(RACKS, switch_latency=np.float64(5.0))
    node, nodes = make_ring(4, 4, 1), make_ring(16, 16, 1)
    ring, across = 3 * (1 + m / 4 / 16), 3 * (2 + m / 16 / 2)
    summed, gathered = 5 + 5 / 4 * m / 16, 5 + m / 16
    tree = 2 * (3 + m / 16)
    assert time(reduce_costs(switches, node, "auto"), m) == min(2 * ring, tree, summed)
    assert time(gather_costs(switches, node, "auto"), m) == min(ring, gathered)
    others = time(reduce_costs(RACKS, nodes, "auto"), m)
    assert time(reduce_costs(switches, nodes, "auto"), m) == min(others, summed + 2 * across)
    one = make_ring(4, 1, 1)
    assert time(reduce_costs(switches, one, "auto"), m) == 0
    assert reduce_costs(switches, node, "ring") == reduce_costs(RACKS, node, "ring")


@pytest.mark.parametrize("m", [8.0, 65536.0])
def test_pes_that_share_a_path_send_one_after_another(m) -> None:
    """q PEs send 2 (q-1) m bytes in all; 16 B/s is what a PE's own link has."""
    shared = replace(RACKS, shared=np.float64(4.0), latency=np.zeros(len(RACKS.span)))
    for q in (1, 2, 4):
        seconds = time(reduce_costs(shared, make_ring(q, q, 1), "ring"), m)
        assert seconds == pytest.approx(2 * (q - 1) * m / 4)
    # Any algorithm is slower by the same; a path as wide as all links together changes nothing.
    ring = make_ring(4, 4, 1)
    for algorithm in ("auto", "tree", "two-level"):
        slow, free = (
            reduce_costs(one, ring, algorithm)
            for one in (shared, replace(shared, shared=np.float64(64.0)))
        )
        assert time(slow, m) == pytest.approx(16 * time(free, m))
        unbounded = reduce_costs(replace(shared, shared=np.float64(np.inf)), ring, algorithm)
        assert time(free, m) == time(unbounded, m)
    # Between nodes no ring is faster than inside one.
    assert float(1 / find_path(shared, make_ring(16, 16, 1)).beta) == 1.0
