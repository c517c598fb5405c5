"""Reserves: chances by hand, their inverse, and limits."""

import math

import numpy as np
import pytest

from paradl.grids.entries.reserves import (
    RESERVES,
    Reserve,
    find_fit_chance,
    find_most_memory,
)

TWICE = Reserve(2.0, math.log(2), "toy")
BESIDE = Reserve(1.0, 0.5, "toy", of_all=False)


@pytest.mark.parametrize(
    ("memory", "chance"),
    [
        (50, 0.5),  # twice as much is all there is
        (25, 0.8413447460685429),  # one spread less
        (100, 0.15865525393145707),
        (0, 1.0),
    ],
)
def test_chances_by_hand(memory: float, chance: float) -> None:
    assert find_fit_chance(memory, 100, TWICE, 1) == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize(
    ("memory", "reserved", "chance"),
    [
        (100, 10, 0.5),
        (100 - 10 * (math.exp(0.5) - 1), 10, 0.8413447460685429),
        (111, 10, 0.0),  # tensors alone are too much
        (100, 0, 1.0),  # nothing is uncertain
        (100.1, 0, 0.0),
    ],
)
def test_of_other_networks_only_the_reserve_is_uncertain(
    memory: float, reserved: float, chance: float
) -> None:
    assert find_fit_chance(memory, 100, BESIDE, reserved) == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize("reserve", [*RESERVES.values(), BESIDE])
@pytest.mark.parametrize("chance", [1e-3, 0.3, 0.5, 0.9, 0.999])
def test_the_most_memory_has_just_the_chance(reserve: Reserve, chance: float) -> None:
    most = find_most_memory(np.array(80e9), np.array(chance), reserve, np.array(1e9))
    assert find_fit_chance(float(most), 80e9, reserve, 1e9) == pytest.approx(chance, rel=1e-9)


def test_without_a_chance_any_memory_will_do() -> None:
    most = find_most_memory(np.array([80.0]), np.array([0.0, 0.5]), TWICE, np.array(1.0))
    assert most.tolist() == [np.inf, 40.0]


def test_more_software_is_known_by_its_own_runs() -> None:
    """Unknown software errs the most, and each reserve says where it is from."""
    unknown = RESERVES["unknown"]
    for name, reserve in RESERVES.items():
        assert reserve.source
        assert reserve.median >= 1
        assert name == "unknown" or reserve.spread < unknown.spread
