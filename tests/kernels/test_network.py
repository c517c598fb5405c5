"""The network: levels of 2, 4 and 16 PEs, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from paradl.kernels.machine.network import Link, Network, shared_links

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


def test_contention_multiplies_beta_alone() -> None:
    assert Link(3.0, 0.5).contended(4.0) == Link(3.0, 2.0)


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
