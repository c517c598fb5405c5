"""Rings on rails: the way of a ring's PEs, by hand, on `racks`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from racks import RACKS, make_ring, oversubscribe

from paradl.kernels.machine.network import (
    Network,
    find_path,
    is_cut,
)

pytestmark = pytest.mark.usefixtures("in_numpy")


def expect_path(network: Network, ring: tuple[float, float, float], alpha: float, speed: float):
    path = find_path(network, make_ring(*ring))
    assert float(path.alpha) == alpha
    assert float(1 / path.beta) == pytest.approx(speed)


@pytest.mark.parametrize(
    ("p", "q", "s", "alpha", "speed"),
    [
        (1, 1, 1, 1, 16),  # one PE
        (4, 4, 1, 1, 16),  # one node
        (16, 4, 1, 1, 16),  # each node has a ring of its own
        (16, 16, 1, 2, 8),  # one ring has both links of a node
        (16, 8, 2, 2, 4),  # two rings share them
        (16, 4, 4, 2, 2),  # a ring for each PE of a node
        (64, 64, 1, 4, 4),  # one ring over the racks' links
        (64, 16, 4, 4, 1),
        (64, 4, 16, 4, 1),  # of a rack's 16 rings each node has 4
        (1e6, 1e6, 1, 4, 4),  # more PEs than there are: the limits say so, the times go on
        (1e6, 1e5, 10, 4, 1),  # no more flows than a node has PEs
    ],
)
def test_the_way_of_a_ring(p, q, s, alpha, speed) -> None:
    expect_path(RACKS, (p, q, s), alpha, speed)


@pytest.mark.parametrize(
    ("p", "q", "s", "alpha", "speed"),
    [
        (3, 3, 1, 1, 16),  # alone in its node
        (12, 3, 1, 2, 4),  # 0-2 | 3-5 on nodes 0-3 | 4-7: two rings leave the second one
        (12, 4, 1, 1, 16),  # nodes of their own
        (6, 6, 1, 2, 8),  # alone on two nodes
        (12, 6, 1, 2, 4),
        (24, 6, 1, 4, 2),  # a rack of 16 cuts one of them, too
        (48, 12, 1, 4, 4),  # the rack alone, of which a node has one end and no more
    ],
)
def test_rings_across_a_border_share_its_links(p, q, s, alpha, speed) -> None:
    expect_path(RACKS, (p, q, s), alpha, speed)


@pytest.mark.parametrize(
    ("shares", "p", "q", "s", "speed"),
    [
        ((1, 4, 1), 64, 64, 1, 4),  # a quarter of a rack's links are enough for one ring
        ((1, 8, 1), 64, 64, 1, 2),
        ((1, 4, 1), 64, 16, 4, 1),  # and for the four of a node
        ((1, 2, 1), 64, 4, 16, 1 / 2),  # 16 rings leave a rack: the stride reaches across
        ((1, 4, 1), 64, 4, 16, 1 / 4),
        ((1, 4, 1), 16, 4, 4, 2),  # none leaves the rack
        ((2, 1, 1), 16, 16, 1, 4),  # of a node's own links
        ((1, 1, 9), 64, 64, 1, 4),  # nothing is above
    ],
)
def test_oversubscription_is_felt_where_rings_fill_the_links(shares, p, q, s, speed) -> None:
    expect_path(oversubscribe(*shares), (p, q, s), 4 if p > 16 else 2, speed)


@given(k=st.integers(1, 12), group=st.integers(1, 12), groups=st.integers(1, 12))
def test_groups_are_cut_where_a_node_ends_inside_one(k, group, groups) -> None:
    """Each group, PE by PE: of several that do not begin where nodes do, one lies across."""
    p = group * groups
    nodes = [{pe // k for pe in range(n * group, (n + 1) * group)} for n in range(groups)]
    least = -(-group // k)
    # Larger groups share their last node with the next one, unless they fill it.
    across = any(len(node) > least for node in nodes) or (
        group > k and groups > 1 and group % k > 0
    )
    if p % k == 0 or p < k:  # else the last node is not full, and cuts need not show
        assert bool(is_cut(np.float64(k), np.float64(p), np.float64(group))) == across
