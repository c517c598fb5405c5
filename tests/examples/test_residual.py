"""A learnt correction: what it learns, from which runs alone, and how it is rated."""

import csv
import sys

import numpy as np
import pytest

import paradl
from examples.residual import RUNS, STRENGTHS, fit_ridge, main, predict_held, rate_parts


@pytest.fixture
def drawn():
    """Features [run, feature] and targets [run] of fifteen runs."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(15, 4)) * [1.0, 10.0, 0.1, 1.0]
    return features, features @ [0.5, 0.01, 2.0, 0.0] + 0.3 * rng.normal(size=15) + 2


def solve(features, targets, query, strength):
    """Ridge regression with a constant that is not held back, by its normal equations."""
    rows = np.column_stack([np.ones(len(features)), features])
    squares = rows.T @ rows + strength * np.diag([0.0, *np.ones(features.shape[1])])
    weights = np.linalg.solve(squares, rows.T @ targets)
    return weights[0] + query @ weights[1:]


def test_strength_is_that_of_the_least_error_of_runs_left_out(drawn):
    features, targets = drawn
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    errors = []
    for strength in STRENGTHS:
        off = []
        for run in range(len(targets)):
            others = np.arange(len(targets)) != run
            off.append(solve(scaled[others], targets[others], scaled[run], strength) - targets[run])
        errors.append(np.mean(np.square(off)))
    best = STRENGTHS[np.argmin(errors)]
    assert STRENGTHS[0] < best < STRENGTHS[-1]
    query = features[:3] + 0.2
    expected = solve(scaled, targets, (query - features.mean(axis=0)) / features.std(axis=0), best)
    np.testing.assert_allclose(fit_ridge(features, targets, query), expected, rtol=1e-9)


def test_what_is_left_out_teaches_nothing(drawn):
    features, targets = drawn
    measured, predicted = np.tile(targets, (3, 1)), np.zeros((3, len(targets)))
    held = np.arange(len(targets)) < 4
    ((_, result),) = predict_held(features, measured, predicted, [held])
    changed = measured + np.where(held, 5.0, 0.0)
    ((_, same),) = predict_held(features, changed, predicted, [held])
    np.testing.assert_array_equal(result, same)
    seen = measured + np.where(held, 0.0, np.linspace(0, 1, len(targets)))
    ((_, other),) = predict_held(features, seen, predicted, [held])
    assert np.abs(other - result).min() > 0


def test_an_oracle_that_is_off_by_a_factor_is_put_right(drawn):
    features, targets = drawn
    predicted = np.tile(targets, (3, 1))
    measured = predicted + np.log([[2.0], [0.5], [1.0]])
    measured[2] = np.nan  # a part that nobody measured
    held = np.arange(len(targets)) % 3 == 0
    result = list(predict_held(features, measured, predicted, [held, ~held]))
    assert rate_parts(measured, result) == pytest.approx({"total": 1.0, "comp": 1.0})
    assert rate_parts(measured, [(held, predicted[:, held])]) == pytest.approx(
        {"total": 0.5, "comp": 0.0}
    )


def test_a_table_of_the_catalogues_runs(tmp_path, monkeypatch, capsys):
    path = tmp_path / "runs.csv"
    with RUNS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["strategy"] == "data"]
    kept = [row for row in rows if row["comp_s"] and int(row["p"]) <= 64]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(kept)
    monkeypatch.setattr(sys, "argv", ["residual.py", str(path)])
    main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "left out n uncalibrated calibrated corrected learnt alone"
    overall = paradl.compare(path, system="abci", calibration="none")["summary"]["overall"]
    stated = "/".join(f"{100 * overall[part]['mean']:.1f}" for part in ("total", "comp", "comm"))
    scheme, runs, uncalibrated, *_ = lines[0].split()
    assert (scheme, int(runs), uncalibrated) == ("configuration", len(kept), stated)
    assert max(map(len, lines)) <= 80
