"""Candidate numbers of segments for a pipeline."""

import pytest

from paradl.grids.entries.strategies import Strategy
from paradl.grids.inputs.runs import list_segments


@pytest.mark.parametrize(
    ("batch", "numbers"),
    [
        (0.25, (1,)),  # less than a sample: one segment, which is too much, too
        (1.0, (1,)),
        (7.5, (1, 2, 4)),
        (8.0, (1, 2, 4, 8)),
        (1e6, tuple(2**n for n in range(11))),
    ],
)
def test_powers_of_two_up_to_a_sample_each(batch: float, numbers: tuple[int, ...]) -> None:
    assert list_segments(Strategy("pipeline"), batch) == numbers


def test_placed_groups_have_sixteen_at_most() -> None:
    assert list_segments(Strategy("placement"), 1e6) == (1, 2, 4, 8, 16)
