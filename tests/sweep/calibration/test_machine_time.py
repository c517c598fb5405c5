"""What networks that ran tell of others on the machine."""

import math

import numpy as np
import pytest

from paradl.sweep.calibration.fit import MACHINE, build_root, predict_unseen


def test_networks_share_the_machines_factor() -> None:
    """Each has its own spread in all; any two have the machine's in common."""
    spreads = np.array([0.15, 0.2, 0.5])
    root = build_root(spreads)
    assert root.shape == (3, 4)
    shared = np.full((3, 3), MACHINE**2)
    np.fill_diagonal(shared, spreads**2)
    np.testing.assert_allclose(root @ root.T, shared)


def test_before_any_run_a_network_is_as_its_prior() -> None:
    unseen = predict_unseen(0.2, 0.0, 1.0)
    assert [unseen.factor, unseen.spread] == pytest.approx([1, 0.2])


def test_a_network_that_did_not_run_is_as_slow_as_the_machine() -> None:
    """Of a known machine the network's own spread is left: 0.2^2 - 0.13^2."""
    known = predict_unseen(0.2, 2.0, 0.0)
    assert known.factor == pytest.approx(math.exp(2 * 0.13))
    assert known.spread == pytest.approx(math.sqrt(0.2**2 - 0.13**2))


def test_a_machine_that_is_known_better_leaves_less_open() -> None:
    spreads = [predict_unseen(0.2, 1.0, variance).spread for variance in (1, 0.5, 0.1, 0)]
    assert spreads == sorted(spreads, reverse=True)
    assert len(set(spreads)) == 4
