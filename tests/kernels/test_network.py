"""The network: levels of 2, 4 and 16 PEs, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.kernels.machine.network import Link, Network, link, shared_links, staged_link

pytestmark = pytest.mark.usefixtures("in_numpy")

NETWORK = Network(
    span=np.array([4.0, 8, 16]),
    latency=np.array([1.0, 2, 3]),
    bandwidth=np.array([8.0, 4, 2]),
    pes_per_node=4.0,
    links_per_node=2.0,
    staging_latency=0.0,
    staging_bandwidth=np.inf,
    phi_halo=1.0,
    phi_gather=1.0,
)


@pytest.mark.parametrize(
    ("q", "alpha", "bandwidth"),
    [
        (1, 1, 8),
        (4, 1, 8),  # as many as a node has
        (5, 2, 4),  # one more
        (8, 2, 4),
        (9, 3, 2),
        (16, 3, 2),
        (17, 3, 2),  # more than the machine has: the limits say so, the times go on
    ],
)
def test_the_smallest_level_that_spans_the_ring(q, alpha, bandwidth) -> None:
    path = link(NETWORK, float(q))
    assert (path.alpha, path.beta) == (alpha, 1 / bandwidth)


@given(q=st.lists(st.integers(1, 20), min_size=3, max_size=3))
def test_cells_choose_their_levels_apart(q) -> None:
    at_once = link(NETWORK, np.array(q, float)).alpha
    assert np.asarray(at_once).tolist() == [link(NETWORK, float(value)).alpha for value in q]


def test_a_bandwidth_that_varies_along_the_cells() -> None:
    bandwidth = np.array([[8.0, 80], [4, 40], [2, 20]])
    varying = replace(NETWORK, latency=np.ones((3, 1)), bandwidth=bandwidth)
    np.testing.assert_allclose(link(varying, np.array([5.0, 5.0])).beta, [1 / 4, 1 / 40])


def test_contention_multiplies_beta_alone() -> None:
    assert Link(3.0, 0.5).contended(4.0) == Link(3.0, 2.0)


def test_staging_bounds_the_path_from_below() -> None:
    staged = replace(NETWORK, staging_latency=2.5, staging_bandwidth=3.0)
    inside, beyond = staged_link(staged, 4.0), staged_link(staged, 16.0)
    assert (inside.alpha, inside.beta) == (2.5, 1 / 3)
    assert (beyond.alpha, beyond.beta) == (3, 1 / 2)  # the network is the slower one


@pytest.mark.parametrize("q", [1.0, 5.0, 16.0])
def test_without_staging_the_path_is_the_network(q) -> None:
    direct, staged = link(NETWORK, q), staged_link(NETWORK, q)
    assert (staged.alpha, staged.beta) == (direct.alpha, direct.beta)


@pytest.mark.parametrize(
    ("p1", "p2", "phi"),
    [
        (8, 1, 1),  # one ring
        (8, 2, 1),  # two rings on two links
        (4, 4, 2),  # four rings on two links
        (2, 8, 2),  # no more of a group than a node has
        (1, 8, 1),  # a single replica reduces nothing
        (1, 4, 1),
        (2, 2, 1),  # all in one node: its links are not used
    ],
)
def test_rings_that_share_the_links_of_a_node(p1, p2, phi) -> None:
    assert shared_links(NETWORK, float(p1 * p2), float(p1), float(p2)) == phi


def test_links_to_spare_do_not_speed_a_ring_up() -> None:
    many = replace(NETWORK, links_per_node=8.0)
    assert shared_links(many, 16.0, 4.0, 4.0) == 1
