"""Cross-validation: what is left out is left out, and by how much a calibration is off."""

import numpy as np
import pytest

from sweep.calibration.accuracy import rate_schemes
from sweep.calibration.cross_validation import leave_out, predict_fitted, schemes
from sweep.calibration.model_error import DEFAULT, find_residuals
from sweep.calibration.posterior import calibrate_machine
from sweep.measured.accuracy import rate_prediction


def held(seen, scheme) -> list[list[str]]:
    """The runs of each fold, as strategy and p."""
    return [
        [f"{run.strategy} {run.p}" for run, out in zip(seen.runs, fold, strict=True) if out]
        for fold in schemes(seen)[scheme]
    ]


def test_runs_that_are_alike_are_left_out_together(observed, shipped) -> None:
    seen = observed([row for row in shipped if row["model"] == "alexnet"])
    assert held(seen, "configuration") == [["serial 1"], ["data 2"], ["data 4"] * 2, ["data 8"]]
    assert held(seen, "series") == [["serial 1"], ["data 2", "data 4", "data 4", "data 8"]]
    assert held(seen, "largest scales") == [["data 8"]]
    assert held(seen, "all but one scale") == [["data 2", "data 8"]]


def test_a_scheme_that_leaves_nothing_is_none(observed, shipped) -> None:
    rows = [row for row in shipped if row["model"] == "alexnet"]
    assert "model" not in schemes(observed(rows))
    assert schemes(observed(rows[:1])) == {}
    assert leave_out(observed(rows[:1])) is None


def test_what_is_left_out_has_no_say(observed, dozen, monkeypatch) -> None:
    """Whatever the left-out runs measured, their predictions are the same."""
    own = np.array([row["model"] == "vgg16" for row in dozen])
    monkeypatch.setattr("sweep.calibration.cross_validation.schemes", lambda _: {"model": [own]})
    off = []
    for factor in (1.0, 3.0):
        slower = dict.fromkeys(("total_s", "comp_s", "comm_s"), factor)
        changed = [
            row | {key: repr(each * float(row[key])) for key, each in slower.items()}
            if vgg
            else row
            for row, vgg in zip(dozen, own, strict=True)
        ]
        seen = observed(changed)
        left = leave_out(seen)
        assert left is not None
        assert left.rows.tolist() == np.flatnonzero(own).tolist()
        off.append(find_residuals(seen, left).off)
    assert off[1] - off[0] == pytest.approx(np.log(3.0))


def test_accuracy_is_as_compare_counts_it(observed, dozen) -> None:
    seen = observed(dozen)
    found = calibrate_machine(seen, np.ones(len(seen), bool), DEFAULT)
    of_fit = find_residuals(seen, predict_fitted(seen, found))
    table = rate_schemes(of_fit, DEFAULT)["fit"]
    predicted = seen.seconds / np.exp(of_fit.off)
    for part, ours, measured in zip(
        ("total", "comp", "comm"), predicted, seen.seconds, strict=True
    ):
        each = [
            rate_prediction(*pair) for pair in zip(ours.tolist(), measured.tolist(), strict=True)
        ]
        assert table[part] == pytest.approx(np.mean(np.array(each, float)))
    assert table["rows"] == 12
    assert 0.5 < table["total_in_interval"] <= 1


def test_what_was_not_measured_has_no_accuracy(observed, dozen) -> None:
    seen = observed([row | {"comp_s": "", "comm_s": ""} for row in dozen])
    found = calibrate_machine(seen, np.ones(len(seen), bool), DEFAULT)
    table = rate_schemes(find_residuals(seen, predict_fitted(seen, found)), DEFAULT)["fit"]
    assert set(table) == {"rows", "total", "total_in_interval"}
