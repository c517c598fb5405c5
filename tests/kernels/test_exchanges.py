"""The wait for the slowest of many PEs; all exchanges: tests/test_machine_agreement.py."""

import numpy as np
import pytest

from paradl.kernels.configuration.hosts import find_slowest

pytestmark = pytest.mark.usefixtures("in_numpy")


def test_the_slowest_of_many_is_the_mean_of_their_largest() -> None:
    """Blom's formula against 4,000 draws of 64 standard normal numbers."""
    drawn = np.random.default_rng(0).standard_normal((4000, 64)).max(axis=1)
    assert float(find_slowest(np.float64(64))) == pytest.approx(drawn.mean(), rel=0.01)
