"""Table III's paths through levels of 4, 8 and 16 PEs, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.kernels.paper.inputs import TableNetwork
from paradl.kernels.paper.network import TablePath, find_path, find_staged_path

pytestmark = pytest.mark.usefixtures("in_numpy")

NETWORK = TableNetwork(
    span=np.array([4.0, 8, 16]),
    latency=np.array([1.0, 2, 3]),
    bandwidth=np.array([8.0, 4, 2]),
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
    path = find_path(NETWORK, float(q))
    assert (path.alpha, path.beta) == (alpha, 1 / bandwidth)


@given(q=st.lists(st.integers(1, 20), min_size=3, max_size=3))
def test_cells_choose_their_levels_apart(q) -> None:
    at_once = find_path(NETWORK, np.array(q, float)).alpha
    assert np.asarray(at_once).tolist() == [find_path(NETWORK, float(value)).alpha for value in q]


def test_a_bandwidth_that_varies_along_the_cells() -> None:
    bandwidth = np.array([[8.0, 80], [4, 40], [2, 20]])
    varying = replace(NETWORK, latency=np.ones((3, 1)), bandwidth=bandwidth)
    np.testing.assert_allclose(find_path(varying, np.array([5.0, 5.0])).beta, [1 / 4, 1 / 40])


def test_staging_bounds_the_path_from_below() -> None:
    staged = replace(NETWORK, staging_latency=2.5, staging_bandwidth=3.0)
    inside, beyond = find_staged_path(staged, 4.0), find_staged_path(staged, 16.0)
    assert (inside.alpha, inside.beta) == (2.5, 1 / 3)
    assert (beyond.alpha, beyond.beta) == (3, 1 / 2)  # the network is the slower one


@pytest.mark.parametrize("q", [1.0, 5.0, 16.0])
def test_without_staging_the_path_is_the_network(q) -> None:
    direct, staged = find_path(NETWORK, q), find_staged_path(NETWORK, q)
    assert (staged.alpha, staged.beta) == (direct.alpha, direct.beta)


def test_contention_multiplies_beta_alone() -> None:
    assert TablePath(3.0, 0.5).contended(4.0) == TablePath(3.0, 2.0)
