"""Features become numbers of mean 0 and variance 1; values outside of training are flagged."""

import numpy as np
import pandas as pd
import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.surrogates.rows import fit_encoding


@pytest.fixture
def frame():
    """Features over many sizes, one of them sometimes 0, one of one value."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "macs": rng.lognormal(20, 3, 500),
            "inter_latency": np.where(rng.random(500) < 0.3, 0.0, rng.uniform(1e-6, 1e-4, 500)),
            "pe": 8.0,
        }
    )


def test_encoded_features_have_mean_0_and_variance_1(frame):
    encoding = fit_encoding(frame, list(frame))
    assert encoding.names == ("macs", "inter_latency")
    assert encoding.constants == {"pe": 8.0}
    encoded = encoding.encode(frame[["macs", "inter_latency"]].to_numpy())
    np.testing.assert_allclose(encoded.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(encoded.std(axis=0), 1, atol=1e-5)


def test_its_slopes_are_differences(frame):
    encoding = fit_encoding(frame, ["macs", "inter_latency"])
    values = frame[["macs", "inter_latency"]].to_numpy()
    step = 1e-3
    above, below = (encoding.encode(values * np.exp(sign * step)) for sign in (1, -1))
    np.testing.assert_allclose(
        (above - below) / (2 * step), encoding.differentiate(values), atol=2e-3
    )


def test_what_was_not_trained_on_is_outside(frame):
    encoding = fit_encoding(frame, list(frame))
    query = frame.iloc[[0, 1, 2]].assign(pe=[8.0, 16.0, 8.0], macs=[1e9, 1e9, 1e30])
    assert encoding.watched == ("macs", "inter_latency", "pe")
    assert encoding.find_outside(query).tolist() == [
        [False, False, False],
        [False, False, True],
        [True, False, False],
    ]
    assert not encoding.find_outside(frame).any()
    # 0 has a finite code even if a feature never was 0 in training.
    assert np.isfinite(encoding.encode(np.array([[0.0, 0.0]]))).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"macs": np.nan}, "'macs'"),
        ({"macs": -1.0}, "'macs'"),
        ({"macs": "many"}, "many"),
    ],
)
def test_bad_features_are_one_message(frame, changed, message):
    encoding = fit_encoding(frame, list(frame))
    with pytest.raises(InputError, match=message):
        encoding.find_outside(frame.assign(**changed))
    with pytest.raises(InputError, match="macs"):
        encoding.find_outside(frame.drop(columns="macs"))


def test_features_of_one_value_teach_nothing(frame):
    with pytest.raises(InputError, match="constant"):
        fit_encoding(frame, ["pe"])
