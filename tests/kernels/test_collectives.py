"""Collectives of Table III: alpha 3 s, beta 1/2 s/B, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.kernels.paper.collectives import all_gather, all_reduce, point_to_point
from paradl.kernels.paper.network import TablePath

pytestmark = pytest.mark.usefixtures("in_numpy")

PATH = TablePath(3.0, 0.5)


def test_point_to_point() -> None:
    assert point_to_point(10.0, PATH) == 3 + 10 / 2


def test_ring_sends_a_part_to_every_other_pe() -> None:
    assert all_gather(5.0, 10.0, PATH) == 4 * (3 + 10 / 5 / 2)


def test_tree_sends_all_of_it_down_every_level() -> None:
    assert all_gather(8.0, 10.0, PATH, "tree") == pytest.approx(3 * (3 + 10 / 2))


@pytest.mark.parametrize("algorithm", ["ring", "tree", "best"])
def test_an_all_reduce_is_two_gathers(algorithm) -> None:
    there_and_back = 2 * all_gather(8.0, 10.0, PATH, algorithm)
    assert all_reduce(8.0, 10.0, PATH, algorithm) == there_and_back


def test_best_is_the_tree_for_small_messages_and_the_ring_for_large_ones() -> None:
    assert all_gather(8.0, 1.0, PATH, "best") == all_gather(8.0, 1.0, PATH, "tree")
    assert all_gather(8.0, 1e6, PATH, "best") == all_gather(8.0, 1e6, PATH, "ring")
    assert all_gather(8.0, 1.0, PATH, "tree") < all_gather(8.0, 1.0, PATH, "ring")
    assert all_gather(8.0, 1e6, PATH, "ring") < all_gather(8.0, 1e6, PATH, "tree")


@pytest.mark.parametrize("algorithm", ["ring", "tree"])
@given(m=st.lists(st.floats(0, 1e6), min_size=1, max_size=5))
def test_collectives_in_all_cost_as_much_as_one_by_one(algorithm, m) -> None:
    apart = sum(float(all_gather(8.0, value, PATH, algorithm)) for value in m)
    at_once = all_gather(8.0, sum(m), PATH, algorithm, messages=float(len(m)))
    assert at_once == pytest.approx(apart, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["ring", "tree", "best"])
@given(m=st.floats(0, 1e15), alpha=st.floats(0, 1), beta=st.floats(0, 1))
def test_one_pe_has_nobody_to_talk_to(algorithm, m, alpha, beta) -> None:
    assert all_reduce(1.0, m, TablePath(alpha, beta), algorithm) == 0


@given(q=st.integers(2, 10_000), m=st.floats(0, 1e12), phi=st.floats(1, 64))
def test_contention_never_helps(q, m, phi) -> None:
    free, contended = all_reduce(q, m, PATH), all_reduce(q, m, PATH.contended(phi))
    assert contended >= free
