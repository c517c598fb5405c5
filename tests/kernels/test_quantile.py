"""Quantiles of the normal distribution against SciPy's, and where there are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from kernels.quantile import find_normal_quantile


@given(st.floats(0, 1) | st.floats(-300, 0).map(lambda power: 10**power))
def test_is_scipy_s_to_the_last_digits(probability):
    assert find_normal_quantile(probability) == pytest.approx(ndtri(probability), rel=2e-15)


@pytest.mark.parametrize("count", [32, 512])
def test_the_middle_is_scipy_s_to_the_last_bit(count):
    """Logarithms, of the tails alone, differ between libraries."""
    probabilities = (np.arange(count) + 0.5) / count
    middle = probabilities[abs(probabilities - 0.5) < 0.36]
    np.testing.assert_array_equal(find_normal_quantile(middle), ndtri(middle))


def test_there_is_none_beyond_certainty():
    np.testing.assert_array_equal(
        find_normal_quantile([-0.1, 0.0, 0.5, 1.0, 1.1, np.nan]),
        [np.nan, -np.inf, 0.0, np.inf, np.nan, np.nan],
    )
