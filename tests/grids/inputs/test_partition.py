"""Pipeline stages: no partition is better than ours; stages are contiguous and none is empty."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grids.inputs.partition import stage_ends


def largest(costs, ends) -> float:
    starts = [0, *ends[:-1]]
    return max(sum(costs[start:end]) for start, end in zip(starts, ends, strict=True))


def best(costs, stages) -> float:
    """The least largest stage of all partitions into that many."""
    cuts = combinations(range(1, len(costs)), stages - 1)
    return min(largest(costs, (*cut, len(costs))) for cut in cuts)


@given(st.lists(st.integers(0, 20).map(float) | st.floats(0, 1), min_size=1, max_size=8))
def test_optimal_for_every_number_of_stages(costs) -> None:
    layers = len(costs)
    found = stage_ends(np.array(costs), np.arange(1, layers + 1))
    assert found.shape == (layers, layers)
    for stages in range(1, layers + 1):
        ends = found[:stages, stages - 1].tolist()
        assert ends == sorted(set(ends))  # ascending: no stage is empty
        assert (ends[0] > 0, ends[-1]) == (True, layers)
        assert set(found[stages - 1 :, stages - 1]) == {layers}
        assert largest(costs, ends) == pytest.approx(best(costs, stages), rel=1e-8, abs=1e-300)


def test_stages_are_filled_from_the_left() -> None:
    """3 is the least bound: (1 2) (3) (1 1 1) and not, say, (1 2) (3 ...)."""
    ends = stage_ends(np.array([1.0, 2, 3, 1, 1, 1]), np.array([3]))
    assert ends[:, 0].tolist() == [2, 3, 6]


def test_a_greedy_cut_at_the_mean_would_be_worse() -> None:
    """The mean is 5: a greedy cut behind it gives 8 and 2, the best is 5 and 5."""
    ends = stage_ends(np.array([4.0, 1, 3, 2]), np.array([2]))
    assert ends[:, 0].tolist() == [2, 4]


def test_numbers_of_stages_may_repeat_in_any_order() -> None:
    ends = stage_ends(np.ones(4), np.array([4, 1, 2, 1]))
    assert ends.T.tolist() == [[1, 2, 3, 4], [4, 4, 4, 4], [2, 4, 4, 4], [4, 4, 4, 4]]
