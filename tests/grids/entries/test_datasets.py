"""Data sets: required keys."""

import pytest
from pydantic import ValidationError

from paradl.grids.entries.datasets import Dataset


def test_rank() -> None:
    assert Dataset(name="sentences", samples=10, shape=(1, 8), targets=2).rank == 1
    assert Dataset(name="images", samples=10, shape=(3, 8, 8), targets=2).rank == 2
    assert Dataset(name="volumes", samples=10, shape=(4, 8, 8, 8), targets=2).rank == 3


@pytest.mark.parametrize(
    "change",
    [
        {"samples": 0},
        {"samples": True},
        {"samples": 1.5},
        {"shape": (3,)},
        {"shape": (3, 8, 8, 8, 8)},
        {"shape": (3, 8, 0)},
        {"targets": -1},
        {"name": ""},
        {"epochs": 3},
    ],
)
def test_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Dataset.model_validate(
            {"name": "images", "samples": 10, "shape": (3, 8, 8), "targets": 2} | change
        )


def test_a_sequence_without_a_length() -> None:
    with pytest.raises(ValidationError, match="at least 2 items"):
        Dataset(name="sentences", samples=10, shape=(1,), targets=2)
