"""Points of a map belong to the fastest of the strategies that win around them."""

import numpy as np
import pytest

from sweep.plots.regions import NOBODY, POINTS, refine_winners, spread_points

VALUES = np.array([1.0, 2.0])
PE = np.array([1.0, 2.0, 5.0, 12.0, 30.0])


def refine(times, values=VALUES):
    """Winners at points, and where the points are along p."""
    points = spread_points(PE)
    return refine_winners(times, (values, spread_points(values)), (PE, points)), points


def find_change(row, points):
    """Where along p the winner changes, once."""
    [at] = np.flatnonzero(np.diff(row))
    return points[at]


def test_changes_are_where_the_times_are_equal():
    # T = 8/p and T = p^2/64 meet at p = 8; the third is nowhere allowed.
    line = np.stack([8 / PE, PE**2 / 64, np.full(5, np.inf)])
    winners, points = refine(np.repeat(line[:, None], 2, axis=1))
    for row in winners:
        assert (row[0], row[-1]) == (1, 0)
        assert find_change(row, points) == pytest.approx(8, rel=0.02)


def test_a_loser_at_all_values_wins_nowhere_between():
    # Straight lines in logarithms: the third would be the fastest near p = 8, between 5 and 12.
    line = np.stack([8 / PE, PE**2 / 64, np.full(5, 1.001)])
    line[2, 1:4] = line.min(axis=0)[1:4] * 1.001
    winners, _ = refine(np.repeat(line[:, None], 2, axis=1))
    assert set(np.unique(winners)) == {0, 1}


def test_where_one_is_not_allowed_the_border_is_half_way():
    line = np.stack([8 / PE, PE**2 / 64])
    line[1, 2] = np.inf
    winners, points = refine(np.repeat(line[:, None], 2, axis=1))
    assert find_change(winners[0], points) == pytest.approx((2 * 5) ** 0.5, rel=0.02)


def test_where_nothing_is_allowed_nobody_wins():
    times = np.stack([8 / PE, PE**2 / 64])
    times = np.repeat(times[:, None], 2, axis=1)
    times[:, 1, 4] = np.inf
    winners, points = refine(times)
    nobody = winners == NOBODY
    expected = np.outer(spread_points(VALUES) > 2**0.5, points > (12 * 30) ** 0.5)
    assert (nobody == expected).mean() > 1 - 4 / POINTS


def test_a_linear_axis_may_begin_at_zero():
    line = np.stack([8 / PE, PE**2 / 64])
    winners, _ = refine(np.repeat(line[:, None], 2, axis=1), np.array([0.0, 1.0]))
    assert winners.shape == (POINTS, POINTS)
