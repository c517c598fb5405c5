"""Surrogates learn, are the same for the same seed, and what is saved answers as it did."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from few_samples import FEW

from grids.reading.errors import InputError
from sweep.samples.read import Samples
from sweep.samples.sample import sample
from sweep.surrogates.predict import predict_surrogate
from sweep.surrogates.surrogate import load_surrogate
from sweep.surrogates.train import train_surrogate

TINY: dict[str, Any] = {"epochs": 3, "width": 8}


@pytest.fixture(scope="module")
def frame(drawn: Samples):
    """Some rows of the networks that are learnt from, as users have them."""
    names = [each["name"] for each in drawn.facts["columns"]]
    return drawn.read(names, {"model": "train"}).head(300)


@pytest.mark.parametrize("learner", ["network", "trees"])
def test_it_learns_and_is_the_same_for_the_same_seed(drawn, frame, tmp_path, learner):
    paths = [tmp_path / f"{number}.eqx" for number in range(2)]
    for path in paths:
        trained = train_surrogate(drawn.path, path, learner=learner, epochs=12, width=16)
        assert trained.bytes == path.stat().st_size < 3e6
    assert paths[0].read_bytes() == paths[1].read_bytes()
    said = predict_surrogate(paths[0], frame)
    defined = frame.defined.to_numpy()
    errors = np.log(said.epoch_time / frame.epoch_time)[defined]
    assert errors.std() < 0.5 * np.log(frame.epoch_time[defined]).std()
    right = (said.feasible == frame.feasible)[defined].mean()
    assert right > 0.9


def test_an_ensemble_tells_how_unsure_it_is(drawn, frame, tmp_path):
    told = []
    path = tmp_path / "ensemble"
    train_surrogate(
        drawn.path, path, members=2, **TINY, report=lambda *words: told.append(words[:3])
    )
    assert told == [(member, epoch, 3) for member in range(2) for epoch in (1, 2, 3)]
    surrogate = load_surrogate(path)
    both = [np.log(_apply_one(surrogate, n, frame)) for n in range(2)]
    said = predict_surrogate(surrogate, frame)
    np.testing.assert_allclose(said.epoch_time_spread, np.std(both, axis=0, ddof=1), atol=1e-5)
    assert (said.epoch_time_spread > 0).all()


def _apply_one(surrogate, number, frame):
    """What one member says of an epoch."""
    alone = replace(surrogate, members=surrogate.members[number : number + 1])
    return alone.apply(frame).epoch_time


def test_a_feature_of_one_value_is_named(drawn, tmp_path):
    trained = train_surrogate(drawn.path, tmp_path / "net", **TINY)
    assert "dataset_samples" in trained.dropped
    assert set(trained.dropped) >= set(drawn.facts["constants"]) & {
        each["name"] for each in drawn.facts["columns"] if each["role"] == "feature"
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"splits": ["modle"]}, "no split 'modle' in .*did you mean 'model'"),
        ({"learner": "forest"}, "^learner: expected network or trees"),
        ({"learner": "trees", "gradients": True}, "^gradients: trees cannot learn slopes"),
        ({"members": 0}, "^members: expected 1 to 100, got 0"),
        ({"epochs": 0}, "^epochs: expected 1 to 10,000, got 0"),
        ({"seed": -1}, "^seed: expected 0 to "),
    ],
)
def test_bad_arguments_are_one_message_and_leave_nothing(drawn, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        train_surrogate(drawn.path, tmp_path / "net", **arguments)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_kept_unless_forced(drawn, tmp_path):
    path = tmp_path / "thesis"
    path.write_text("years of work")
    with pytest.raises(InputError, match="is there already; name another file, or give force=True"):
        train_surrogate(drawn.path, path, **TINY)
    assert path.read_text() == "years of work"
    train_surrogate(drawn.path, path, **TINY, force=True)
    assert load_surrogate(path).learner == "network"


def test_too_few_rows_and_no_gradients(tmp_path):
    sample(FEW, tmp_path / "few", 60, gradients=None)
    with pytest.raises(InputError, match="expected at least 100 rows to train on, got"):
        train_surrogate(tmp_path / "few", tmp_path / "net")
    with pytest.raises(InputError, match="gradients: the data set has no gradients"):
        train_surrogate(tmp_path / "few", tmp_path / "net", gradients=True)
    with pytest.raises(InputError, match="no data set here"):
        train_surrogate(tmp_path, tmp_path / "net")
