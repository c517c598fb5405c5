"""Cross-validation: what is left out is left out, and by how much a calibration is off."""

import numpy as np
import pytest

import paradl
from paradl.grids.entries.calibration import ASSUMED, CalibrationFile
from paradl.kernels.names.stored import PERCENTILES
from paradl.sweep.calibration.cross_validation import FITTED, leave_out, list_folds, predict_fitted
from paradl.sweep.calibration.fit import calibrate_machine
from paradl.sweep.calibration.residuals import find_residuals, rate_schemes
from paradl.sweep.measured.compare import rate_prediction
from paradl.sweep.measured.runs import PARTS


@pytest.fixture(scope="module")
def calibrated(observed, seven) -> CalibrationFile:
    return calibrate_machine(observed(seven), np.ones(7, bool), ASSUMED, starts=1)


def list_held(observations, scheme) -> list[list[str]]:
    """The runs of each fold, as strategy and p."""
    return [
        [f"{run.strategy} {run.p}" for run, out in zip(observations.runs, fold, strict=True) if out]
        for fold in list_folds(observations)[scheme]
    ]


def test_runs_that_are_alike_are_left_out_together(observed, shipped) -> None:
    observations = observed([row for row in shipped if row["model"] == "alexnet"])
    assert list_held(observations, "configuration") == [
        ["serial 1"],
        ["data 2"],
        ["data 4"] * 2,
        ["data 8"],
    ]
    assert list_held(observations, "series") == [
        ["serial 1"],
        ["data 2", "data 4", "data 4", "data 8"],
    ]
    assert list_held(observations, "largest scales") == [["data 8"]]
    assert list_held(observations, "all but one scale") == [["data 2", "data 8"]]


def test_settings_make_no_other_strategy(observed, seven) -> None:
    """Else a fit would have seen the series that it predicts as unseen."""
    ran = (("data", 8), ("data+filter:group=2", 8), ("data+filter:group=4", 16))
    rows = [seven[0] | {"strategy": strategy, "p": str(p)} for strategy, p in ran]
    observations = observed(rows)
    for scheme in ("series", "strategy"):
        assert list_held(observations, scheme) == [
            ["data 8"],
            ["data+filter:group=2 8", "data+filter:group=4 16"],
        ]
    # They are other configurations, though.
    assert len(list_held(observations, "configuration")) == 3


def test_a_scheme_that_leaves_nothing_is_none(observed, shipped) -> None:
    rows = [row for row in shipped if row["model"] == "alexnet"]
    assert "model" not in list_folds(observed(rows))
    assert list_folds(observed(rows[:1])) == {}
    assert leave_out(observed(rows[:1])) == []


def test_what_is_left_out_has_no_say(observed, seven, monkeypatch) -> None:
    """Whatever the left-out runs measured, their predictions are the same."""
    own = np.array([row["model"] == "vgg16" for row in seven])
    monkeypatch.setattr(
        "paradl.sweep.calibration.cross_validation.list_folds", lambda _: {"model": [own]}
    )
    off = []
    for factor in (1.0, 3.0):
        slower = dict.fromkeys(("total_s", "comp_s", "comm_s"), factor)
        changed = [
            row | {key: repr(value * float(row[key])) for key, value in slower.items()}
            if vgg
            else row
            for row, vgg in zip(seven, own, strict=True)
        ]
        observations = observed(changed)
        left = leave_out(observations)
        assert [rest.row for rest in left] == np.flatnonzero(own).tolist()
        off.append(find_residuals(observations, left).off)
    assert off[1] - off[0] == pytest.approx(np.log(3.0))


def test_only_the_schemes_that_are_asked_for(observed, seven) -> None:
    observations = observed(seven)
    left = leave_out(observations, ("model",))
    assert {rest_.scheme for rest_ in left} == {"model"}
    assert sorted(rest_.row for rest_ in left) == list(range(7))
    assert leave_out(observations, ()) == []


def test_what_is_joined_is_told_apart(observed, seven, calibrated) -> None:
    observations = observed(seven)
    fitted, left = predict_fitted(observations, calibrated), leave_out(observations, ("model",))
    both = find_residuals(observations, [*fitted, *left])
    for one, scheme in ((fitted, FITTED), (left, "model")):
        alone = find_residuals(observations, one)
        part = both.select(both.schemes == scheme)
        np.testing.assert_allclose(part.off, alone.off)
        np.testing.assert_allclose(part.spread(ASSUMED), alone.spread(ASSUMED))


def rate_fit(observations) -> dict[str, float]:
    """Accuracies of a calibration of all runs."""
    file = calibrate_machine(observations, np.ones(len(observations), bool), ASSUMED, starts=1)
    residuals = find_residuals(observations, predict_fitted(observations, file))
    return rate_schemes(residuals, ASSUMED)[FITTED]


def test_accuracy_is_as_compare_counts_it(observed, seven, calibrated) -> None:
    observations = observed(seven)
    residuals = find_residuals(observations, predict_fitted(observations, calibrated))
    table = rate_schemes(residuals, ASSUMED)[FITTED]
    predicted = observations.seconds / np.exp(residuals.off)
    for part, ours, seconds in zip(PARTS, predicted, observations.seconds, strict=True):
        values = [
            rate_prediction(*pair) for pair in zip(ours.tolist(), seconds.tolist(), strict=True)
        ]
        assert table[part] == pytest.approx(np.mean(np.array(values, float)))
    assert table["rows"] == 7
    assert 0.5 < table["total_in_interval"] <= 1


def test_what_was_not_measured_has_no_accuracy(observed, seven) -> None:
    table = rate_fit(observed([row | {"comp_s": "", "comm_s": ""} for row in seven]))
    assert set(table) == {"rows", "total", "total_in_interval"}


def test_spreads_of_left_out_runs_are_those_of_predictions(observed, seven, calibrated) -> None:
    """A fitted calibration's, as `predict` tells them: 7 runs at once are as one by one."""
    observations = observed(seven)
    residuals = find_residuals(observations, predict_fitted(observations, calibrated))
    sigma = residuals.spread(ASSUMED)
    for n, run in enumerate(observations.runs):
        prediction = paradl.predict(
            run.model,
            run.strategy,
            run.p,
            run.samples_per_replica,
            dataset=run.dataset,
            system="dgx-a100",
            settings={"calibration": [calibrated.definition()]},
        )["intervals"]
        for part, name in enumerate(("time", "comp_time", "comm_time")):
            interval = prediction[f"iteration_{name}"]
            expected = np.log(interval["p90"] / interval["p50"]) / PERCENTILES[90]
            assert sigma[part, n] == pytest.approx(expected, rel=1e-6)
