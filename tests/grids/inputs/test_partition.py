"""Pipeline stages: no partition is better; stages are contiguous and not empty."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import example, given
from hypothesis import strategies as st
from placement_toys import diamond, join_devices

from paradl.grids.graphs.links import link_devices
from paradl.grids.inputs.partition import place_stages, stage_ends
from paradl.grids.library import find
from paradl.grids.placing.problem import pose_problem


def largest(costs, ends) -> float:
    starts = [0, *ends[:-1]]
    return max(sum(costs[start:end]) for start, end in zip(starts, ends, strict=True))


def best(costs, stages) -> float:
    """Return the least largest stage of all partitions into this many."""
    cuts = combinations(range(1, len(costs)), stages - 1)
    return min(largest(costs, (*cut, len(costs))) for cut in cuts)


@limit_examples(50)
@given(st.lists(st.integers(0, 20).map(float) | st.floats(0, 1), min_size=1, max_size=8))
@example([0.4, 0.9, 0.1])  # 0.4 + (1.4000000000000001 - 0.4) == 1.4: bounds need slack
def test_optimal_for_every_number_of_stages(costs) -> None:
    layers = len(costs)
    result = stage_ends(np.array(costs), np.arange(1, layers + 1))
    assert result.shape == (layers, layers)
    for stages in range(1, layers + 1):
        ends = result[:stages, stages - 1].tolist()
        assert ends == sorted(set(ends))  # ascending: no stage is empty
        assert (ends[0] > 0, ends[-1]) == (True, layers)
        assert set(result[stages - 1 :, stages - 1]) == {layers}
        assert largest(costs, ends) == pytest.approx(best(costs, stages), rel=1e-8, abs=1e-300)


def test_stages_are_filled_from_the_left() -> None:
    """3 is the least bound: (1 2) (3) (1 1 1) and not, say, (1 2) (3 ...)."""
    ends = stage_ends(np.array([1.0, 2, 3, 1, 1, 1]), np.array([3]))
    assert ends[:, 0].tolist() == [2, 3, 6]


def test_numbers_of_stages_may_repeat_in_any_order() -> None:
    ends = stage_ends(np.ones(4), np.array([4, 1, 2, 1]))
    assert ends.T.tolist() == [[1, 2, 3, 4], [4, 4, 4, 4], [2, 4, 4, 4], [4, 4, 4, 4]]


# Cuts with items.


def list_partitions(layers: int, stages: int) -> list[tuple[int, ...]]:
    """Yield the ends of all partitions, those that are fuller on the left first."""
    cuts = combinations(range(layers - 1, 0, -1), stages - 1)
    return sorted(((*sorted(cut), layers) for cut in cuts), reverse=True)


def choose(costs, crossing, stages) -> tuple[int, ...]:
    """By definition: the fewest items, then the least largest stage, filled from the left."""
    within = 1.05 * best(costs, stages)
    partitions = [
        ends for ends in list_partitions(len(costs), stages) if largest(costs, ends) <= within
    ]

    def rank(ends) -> tuple[float, float]:
        return max((crossing[end - 1] for end in ends[:-1]), default=0), largest(costs, ends)

    least = min(map(rank, partitions))
    return next(ends for ends in partitions if rank(ends) == least)


# Whole numbers, so that sums are exact; for 41 and 42 in a row some partitions are within 5 %.
whole = st.integers(0, 3) | st.integers(40, 43)


@limit_examples(50)
@given(
    layers=st.lists(
        st.tuples(whole.map(float), st.integers(0, 4).map(float)), min_size=1, max_size=9
    )
)
@example(layers=[(40.0, 2.0), (1.0, 1.0), (41.0, 0.0)])
@example(layers=[(40.0, 2.0), (3.0, 1.0), (41.0, 0.0)])
def test_of_the_balanced_partitions_the_one_that_carries_the_least(layers) -> None:
    costs, crossing = map(np.array, zip(*layers, strict=True))
    ends = stage_ends(costs, np.arange(1, len(layers) + 1), crossing)
    for stages in range(1, len(layers) + 1):
        expected = choose(costs.tolist(), crossing.tolist(), stages)
        assert tuple(ends[:stages, stages - 1].tolist()) == expected
        assert set(ends[stages - 1 :, stages - 1]) == {len(layers)}


def test_stages_are_balanced_and_their_devices_next_to_each_other():
    problem = pose_problem(diamond(branch=2.0), join_devices(3))
    assert place_stages(problem) == [(0, 0, 1, 1), (0, 0, 1, 2)]
    assert place_stages(pose_problem(diamond(), join_devices(1))) == []
    # PEs 0 to 3 of a DGX-1: two links join 0 and 3, 1 and 2, 2 and 3; from 0 that gives 3, 2, 1.
    links = link_devices(find("system", "dgx1-v100", Path()), 4)
    assert links.pes == (0, 1, 2, 3)
    assert place_stages(pose_problem(diamond(), links))[-1] == (0, 3, 2, 1)
