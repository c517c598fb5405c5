"""What networks that ran tell of others on the machine."""

import math

import numpy as np
import pytest

from sweep.calibration.machine_time import build_covariance, predict_unseen


def predict(logs: list[float], spread: float = 0.0):
    """Of networks whose factors are known to `spread`, the prior's being 0.2."""
    spreads = np.full(len(logs), 0.2)
    return predict_unseen(0.2, spreads, np.array(logs), np.eye(len(logs)) * spread**2)


def test_more_networks_say_more() -> None:
    slow = math.log(1.2)
    factors = [predict([slow] * count).factor for count in (0, 1, 3, 9)]
    spreads = [predict([slow] * count).spread for count in (0, 1, 3, 9)]
    assert factors == sorted(factors)
    assert [factors[0], spreads[0]] == pytest.approx([1, 0.2])
    assert spreads == sorted(spreads, reverse=True)
    assert 1.1 < factors[1] < factors[-1] < 1.2


def test_runs_that_say_nothing_leave_the_prior() -> None:
    spreads = np.array([0.15, 0.2, 0.2])
    unseen = predict_unseen(0.2, spreads, np.zeros(3), build_covariance(spreads))
    assert [unseen.factor, unseen.spread] == pytest.approx([1, 0.2])


def test_networks_that_disagree_leave_others_unsure() -> None:
    assert predict([-0.4, 0.4]).spread > 0.4 > predict([0.1, 0.1]).spread
