"""Surrogates learn and are the same for the same seed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sampled_spaces import FEW, RECIPE

from paradl.grids.reading.errors import InputError
from paradl.sweep.samples.read import Samples
from paradl.sweep.samples.sample import sample
from paradl.sweep.surrogates.surrogate import load_surrogate, predict_surrogate
from paradl.sweep.surrogates.train import Trained, train_surrogate

TINY: dict[str, Any] = {"epochs": 3, "width": 8}


@pytest.fixture(scope="module")
def ensemble(drawn: Samples, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, list[Any]]:
    """Two networks that have hardly learnt, and the progress that was reported."""
    reports: list[Any] = []
    trained = train_surrogate(
        drawn.path,
        tmp_path_factory.mktemp("ensemble") / "net",
        members=2,
        **TINY,
        report=lambda *words: reports.append(words[:3]),
    )
    return trained, reports


@pytest.fixture(scope="module")
def frame(drawn: Samples):
    """Some rows of training networks, as users have them."""
    names = [column["name"] for column in drawn.facts["columns"]]
    return drawn.read(names, {"model": "train"}).head(300)


def test_it_learns_and_is_the_same_for_the_same_seed(drawn, trained, frame, tmp_path):
    paths = [trained, tmp_path / "again"]
    again = train_surrogate(drawn.path, paths[1], **RECIPE)
    assert again.bytes == paths[1].stat().st_size < 3e6
    assert paths[0].read_bytes() == paths[1].read_bytes()
    predicted = predict_surrogate(paths[0], frame)
    defined = frame.defined.to_numpy()
    errors = np.log(predicted.epoch_time / frame.epoch_time)[defined]
    assert errors.std() < 0.5 * np.log(frame.epoch_time[defined]).std()
    right = (predicted.feasible == frame.feasible)[defined].mean()
    assert right > 0.9


def test_an_ensemble_states_its_spread(ensemble, frame):
    trained, reports = ensemble
    assert reports == [(member, epoch, 3) for member in range(2) for epoch in (1, 2, 3)]
    surrogate = load_surrogate(trained.path)
    both = [np.log(_apply_one(surrogate, n, frame)) for n in range(2)]
    predicted = predict_surrogate(surrogate, frame)
    np.testing.assert_allclose(predicted.epoch_time_spread, np.std(both, axis=0, ddof=1), atol=1e-5)
    assert (predicted.epoch_time_spread > 0).all()


def _apply_one(surrogate, number, frame):
    """One member's prediction of an epoch."""
    alone = replace(surrogate, members=surrogate.members[number : number + 1])
    return alone.apply(frame).epoch_time


def test_a_feature_of_one_value_is_named(drawn, ensemble):
    trained, _ = ensemble
    assert "dataset_samples" in trained.dropped
    assert set(trained.dropped) >= set(drawn.facts["constants"]) & {
        column["name"] for column in drawn.facts["columns"] if column["role"] == "feature"
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"splits": ["modle"]}, "^splits: .*'modle'.*'model'"),
        ({"members": 0}, "^members: "),
        ({"epochs": 0}, "^epochs: "),
        ({"seed": -1}, "^seed: "),
    ],
)
def test_bad_arguments_are_one_message_and_leave_nothing(drawn, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        train_surrogate(drawn.path, tmp_path / "net", **arguments)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_kept_unless_forced(drawn, tmp_path):
    path = tmp_path / "thesis"
    path.write_text("years of work")
    with pytest.raises(InputError, match="thesis"):
        train_surrogate(drawn.path, path, **TINY)
    assert path.read_text() == "years of work"
    train_surrogate(drawn.path, path, **TINY, force=True)
    assert load_surrogate(path).members


def test_too_few_rows_and_no_gradients(tmp_path):
    # Groups that the oracle chooses are answered in numpy.
    axes = FEW["axes"] | {"strategy": "data+filter:group=best"}
    sample(FEW | {"axes": axes}, tmp_path / "few", 60, gradients=None)
    with pytest.raises(InputError, match="100"):
        train_surrogate(tmp_path / "few", tmp_path / "net")
    with pytest.raises(InputError, match=r"^gradients: "):
        train_surrogate(tmp_path / "few", tmp_path / "net", gradients=True)
    with pytest.raises(InputError, match=r"dataset.json"):
        train_surrogate(tmp_path, tmp_path / "net")
