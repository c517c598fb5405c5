"""The scalar machine oracle by hand: networks and collectives (docs/machine.md, Network).

NET has nodes of 4 PEs with 2 links: inside 1 s and 16 B/s; a link carries 4 B/s between the 4 nodes
of a rack (2 s), and 2 B/s between racks (4 s). So 8 and 4 B/s leave a node.
"""

import math
from dataclasses import replace

import pytest
from reference_network import (
    Algorithm,
    Network,
    all_gather,
    all_gather_seconds,
    all_reduce,
    all_reduce_seconds,
    path,
    ring,
)

LEVELS = [(4, 1.0, 16.0), (16, 2.0, 4.0), (64, 4.0, 2.0)]
NET = Network(pes_per_node=4, links_per_node=2, levels=LEVELS)


def assert_path(network: Network, p: int, q: int, s: int, alpha: float, speed: float) -> None:
    assert path(network, p, q, s) == pytest.approx((alpha, 1 / speed))


# Ways: of p PEs, q of a ring at stride s.


@pytest.mark.parametrize(
    ("p", "q", "s", "alpha", "speed"),
    [
        (4, 4, 1, 1, 16),  # a node
        (16, 4, 1, 1, 16),
        (16, 16, 1, 2, 8),  # a rack: one ring has all links of a node
        (16, 8, 2, 2, 4),  # two rings
        (16, 4, 4, 2, 2),  # a ring for each PE of a node
        (64, 64, 1, 4, 4),  # one ring of all, on the racks' links
        (64, 16, 4, 4, 1),
        (64, 4, 16, 4, 1),  # 16 rings leave a rack of 4 nodes: 4 for the links of each
        (128, 128, 1, 4, 4),  # more than there are: the last level
        (32, 16, 1, 2, 8),  # each rack has its own ring
    ],
)
def test_path(p: int, q: int, s: int, alpha: float, speed: float) -> None:
    assert_path(NET, p, q, s, alpha, speed)


@pytest.mark.parametrize(
    ("shares", "p", "q", "s", "speed"),
    [
        ((1, 4, 1), 64, 64, 1, 4),  # 4 nodes of a rack have the links of one: enough for one ring
        ((1, 8, 1), 64, 64, 1, 2),
        ((1, 4, 1), 64, 16, 4, 1),
        ((1, 8, 1), 64, 16, 4, 1 / 2),
        ((1, 8, 1), 16, 16, 1, 8),  # none leaves the rack
        ((2, 1, 1), 16, 16, 1, 4),  # of the node's own links
        ((1, 1, 9), 64, 64, 1, 4),  # nothing is above
    ],
)
def test_oversubscription(
    shares: tuple[float, float, float], p: int, q: int, s: int, speed: float
) -> None:
    levels = [(*level, share) for level, share in zip(LEVELS, shares, strict=True)]
    crossed = p > 16
    assert_path(replace(NET, levels=levels), p, q, s, 4 if crossed else 2, speed)


# What is reached of what is stated.


@pytest.mark.parametrize(
    ("rail", "flow", "reached", "ring_of", "speed"),
    [
        (0.5, math.inf, 1.0, (16, 16, 1), 4),  # of a node's 8 B/s
        (0.5, math.inf, 1.0, (16, 4, 4), 1),  # four flows share that
        (0.25, math.inf, 1.0, (64, 64, 1), 1),  # of 4 B/s between racks
        (1.0, 0.5, 1.0, (16, 16, 1), 4),  # one alone
        (1.0, 0.5, 1.0, (16, 8, 2), 4),  # two of them use all
        (1.0, 0.25, 1.0, (16, 8, 2), 2),
        (1.0, 0.25, 1.0, (64, 64, 1), 1),
        (0.5, 0.5, 1.0, (16, 8, 2), 2),
        (1.0, 4.0, 1.0, (16, 16, 1), 8),
        (1.0, math.inf, 0.25, (16, 16, 1), 4),  # of a PE's 16 B/s, on the way out, too
        (1.0, math.inf, 0.25, (4, 4, 1), 4),
        (0.5, 0.1, 1.0, (4, 4, 1), 16),  # nothing leaves the node
        (0.5, math.inf, 0.125, (16, 4, 4), 1),
    ],
)
def test_a_way_reaches_a_part(
    rail: float, flow: float, reached: float, ring_of: tuple[int, int, int], speed: float
) -> None:
    network = replace(NET, rail=rail, flow=flow)
    assert path(network, *ring_of, reached).beta == pytest.approx(1 / speed)


# Rings.


@pytest.mark.parametrize(
    ("p", "q", "s", "h", "n"),
    [
        (16, 16, 1, 4, 4),
        (16, 2, 1, 2, 1),
        (16, 8, 2, 2, 4),
        (16, 4, 4, 1, 4),
        (64, 4, 16, 1, 4),
        (6, 6, 1, 4, 2),
        (6, 2, 3, 1, 2),  # 3 does not divide 4
        (12, 3, 1, 1, 3),  # torn
        (12, 6, 1, 1, 6),
        (16, 1, 4, 1, 1),
    ],
)
def test_pes_of_a_ring_in_a_node(p: int, q: int, s: int, h: int, n: int) -> None:
    over = ring(NET, p, q, s)
    assert (over.h, over.n) == (h, n)


def test_rails_between_nodes() -> None:
    # 4 PEs of a node send at once: a quarter of its 8 B/s each
    for p in (6, 16):
        assert ring(NET, p, p, 1).rail == pytest.approx((2, 1 / 2))
    assert ring(NET, 64, 64, 1).rail == pytest.approx((4, 1))
    assert ring(NET, 16, 16, 1).inside == (1, 1 / 16)


# Collectives of 1024 bytes on 16 PEs in 4 nodes.


@pytest.mark.parametrize(
    ("messages", "around", "tree", "levels"),
    [
        # 30 (2 + 64/8); 2 (3 x 1 + 2 x 2 + 1024/8); 6 (1 + 256/16) + 6 (2 + 64/2)
        (1, 300, 270, 102 + 204),
        # 30 (6 + 64/8); 2 (3 x 7 + 128); 6 (3 + 16) + 6 (6 + 32)
        (3, 420, 298, 114 + 228),
    ],
)
def test_collectives(messages: float, around: float, tree: float, levels: float) -> None:
    over = ring(NET, 16, 16, 1)
    reduced = {"ring": around, "tree": tree, "two-level": levels}
    gathered = {"ring": around / 2, "tree": around / 2, "two-level": levels / 2}
    assert all_reduce_seconds(over, 1024, messages) == pytest.approx(reduced)
    assert all_gather_seconds(over, 1024, messages) == pytest.approx(gathered)
    assert all_reduce("auto", over, 1024, messages) == pytest.approx(min(around, tree, levels))
    fastest = min(around, levels) / 2
    assert all_gather("auto", over, 1024, messages) == pytest.approx(fastest)
    for name in ("ring", "tree", "two-level"):
        algorithm: Algorithm = name
        assert all_reduce(algorithm, over, 1024, messages) == pytest.approx(reduced[name])
        assert all_gather(algorithm, over, 1024, messages) == pytest.approx(gathered[name])
