"""The law of epochs by global batch: closed forms, limits, and arrays of any kind."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.kernels.configuration.convergence import Law, count_epochs, spread_epochs

EPOCHS = st.floats(0.01, 1e4)
BATCHES = st.floats(1, 1e9)
TOY = Law(epochs_min=10.0, critical_batch=1000.0)


def test_by_hand():
    assert count_epochs(TOY, 500) == 15
    assert count_epochs(TOY, 1000) == 20
    assert count_epochs(TOY, 4000) == 50


@given(EPOCHS, BATCHES)
def test_small_batches_need_the_least(epochs, critical):
    assert count_epochs(Law(epochs, critical), 0) == epochs
    assert count_epochs(Law(epochs, critical), 1e-12 * critical) == pytest.approx(epochs)


@given(EPOCHS, BATCHES, BATCHES, BATCHES)
def test_epochs_never_fall_and_steps_never_rise(epochs, critical, one, other):
    law, low, high = Law(epochs, critical), min(one, other), max(one, other)
    assert count_epochs(law, low) <= count_epochs(law, high)
    steps = [count_epochs(law, batch) / batch for batch in (low, high)]
    assert steps[0] >= steps[1] * (1 - 1e-12)


@given(EPOCHS, BATCHES, BATCHES, st.floats(1e-3, 1e3))
def test_only_the_ratio_of_the_batches_counts(epochs, critical, batch, scale):
    scaled = count_epochs(Law(epochs, critical * scale), batch * scale)
    assert scaled == pytest.approx(count_epochs(Law(epochs, critical), batch))


@given(EPOCHS, BATCHES, BATCHES)
def test_steps_have_mccandlish_form(epochs, critical, batch):
    """S = S_min (1 + B_c / B), where S_min = E_min D / B_c."""
    samples = 1e6
    steps = count_epochs(Law(epochs, critical), batch) * samples / batch
    assert steps == pytest.approx(epochs * samples / critical * (1 + critical / batch))


def test_an_infinite_critical_batch_is_a_constant():
    law = Law(7.0, math.inf, epochs_variance=0.04, error=0.1)
    for batch in (1.0, 1e15):
        assert count_epochs(law, batch) == 7
        assert spread_epochs(law, batch) == pytest.approx(math.sqrt(0.05))


UNSURE = Law(10.0, 1000.0, epochs_variance=0.04, covariance=0.03, batch_variance=0.09, error=0.05)


def test_spread_at_its_ends():
    """Of E_min for the smallest batches; of S_min = E_min D / B_c for the largest."""
    assert spread_epochs(UNSURE, 0) == pytest.approx(math.sqrt(0.04 + 0.05**2))
    steps = 0.04 - 2 * 0.03 + 0.09 + 0.05**2
    assert spread_epochs(UNSURE, 1e12) == pytest.approx(math.sqrt(steps))


@pytest.mark.parametrize("batch", [10.0, 800.0, 30_000.0])
def test_spread_is_the_derivative_s(batch):
    def shift(epochs, critical):
        law = Law(10 * math.exp(epochs), 1000 * math.exp(critical))
        return math.log(count_epochs(law, batch))

    step = 1e-6
    slopes = np.array([shift(step, 0) - shift(-step, 0), shift(0, step) - shift(0, -step)]) / 2e-6
    variance = slopes @ np.array([[0.04, 0.03], [0.03, 0.09]]) @ slopes + 0.05**2
    assert spread_epochs(UNSURE, batch) == pytest.approx(math.sqrt(variance))


@pytest.mark.usefixtures("float64")
def test_arrays_of_either_library():
    batches = np.array([0.0, 256.0, 8192.0])
    for function in (count_epochs, spread_epochs):
        single = [function(UNSURE, float(batch)) for batch in batches]
        np.testing.assert_allclose(function(UNSURE, batches), single)
        np.testing.assert_allclose(function(UNSURE, jnp.asarray(batches)), single)
