"""Splits are scored on rows that were not trained on, next to baselines."""

import json
import re
import shutil
from itertools import product

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.stored import EPOCH, TARGETS
from paradl.sweep.cli.main import app
from paradl.sweep.surrogates import evaluate
from paradl.sweep.surrogates.evaluate import (
    Habit,
    Neighbours,
    evaluate_surrogate,
    measure_tau,
    score_rows,
    score_slices,
)
from paradl.sweep.surrogates.rows import fit_encoding
from paradl.sweep.surrogates.surrogate import predict_surrogate


def test_each_split_is_scored_beside_baselines(trained, drawn):
    rows = evaluate_surrogate(trained, drawn.path)
    scored = [(row["split"], row["method"]) for row in rows if "note" not in row]
    methods = ("network", "neighbour", "habit")
    assert scored == [(split, method) for split in ("random", "model") for method in methods]
    notes = {row["split"]: str(row["note"]) for row in rows if "note" in row}
    assert set(notes) == set(drawn.splits) - {"random", "model"}
    assert "scale" in notes["scale"]


def test_scores_are_of_rows_that_were_not_trained_on(trained, drawn):
    """As a user would: the test rows of the split by pandas, the surrogate by its function."""
    frame = pd.read_parquet(drawn.path / "data")
    tested = frame[(frame.split_model == "test") & (frame.split_random == "train")]
    predicted = predict_surrogate(trained, tested)
    expected = score_rows(tested, predicted)
    expected |= score_slices(tested, predicted, tested.slice.to_numpy())
    (row,) = evaluate_surrogate(trained, drawn.path, splits=["model"], baselines=False)
    assert row["rows"] == len(tested)
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, rel=1e-4), name


def test_another_data_set_is_refused(trained, drawn, tmp_path):
    shutil.copytree(drawn.path, tmp_path / "other")
    facts = dict(drawn.facts) | {"seed": 8}
    (tmp_path / "other" / "dataset.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match=r"other: .*'random'"):
        evaluate_surrogate(trained, tmp_path / "other")
    with pytest.raises(InputError, match="'speed'"):
        evaluate_surrogate(trained, drawn.path, splits=["speed"])


def test_the_commands(drawn, tmp_path):
    run, net = CliRunner().invoke, str(tmp_path / "net")
    data = str(drawn.path)
    result = run(app, ["surrogate", "train", data, "-o", net, "--epochs", "3", "--width", "8"])
    assert result.exit_code == 0
    result = run(app, ["surrogate", "evaluate", net, data, "--format", "json", "--no-baselines"])
    assert {row["split"] for row in json.loads(result.stdout)} == set(drawn.splits)
    rows = tmp_path / "rows.csv"
    features = drawn.list_columns("feature", constants=True)
    frame = drawn.read(["strategy", *features], {"random": "train", "model": "train"}).head(3)
    frame.assign(pe=[8, 16, 2**20]).to_csv(rows, index=False)
    result = run(app, ["surrogate", "predict", net, str(rows), "--format", "json"])
    answers = json.loads(result.stdout)
    flags = ["pe" in answer["outside"].split(", ") for answer in answers]
    assert flags == [False, False, True]


def test_rows_that_are_no_table_give_one_message(trained, tmp_path):
    path = tmp_path / "rows.csv"
    with pytest.raises(InputError, match=r"rows.csv: "):
        predict_surrogate(trained, path)
    path.write_text("pe\n")
    with pytest.raises(InputError, match=r"rows.csv: "):
        predict_surrogate(trained, path)
    path.write_text("pe\n8\n")
    with pytest.raises(InputError, match="missing"):
        predict_surrogate(trained, path)
    path = tmp_path / "rows.parquet"
    path.write_text("pe\n8\n")
    with pytest.raises(InputError, match=r"rows.parquet: "):
        predict_surrogate(trained, path)


def test_each_score_is_reported(trained, drawn):
    told = []
    evaluate_surrogate(trained, drawn.path, report=lambda *step: told.append(step))
    methods = ("network", "neighbour", "habit")
    assert {*product(("random", "model"), methods)} <= {*told}


def test_evaluating_reports_progress_in_a_pipe(trained, drawn, cli, monkeypatch):
    monkeypatch.setattr("paradl.sweep.engine.progress.PERIOD", 0.0005)
    code, _, err = cli("surrogate", "evaluate", trained, drawn.path)
    assert code == 0
    # A score that is found within the period passes unseen here, but is reported.
    assert re.search(r"paradl: (random|model): (network|neighbour|habit) \(", err)


def make_answers(seconds, feasible) -> pd.DataFrame:
    return pd.DataFrame({EPOCH: seconds, "feasible": feasible})


@pytest.fixture
def made_up():
    """True and predicted answers: 40 slices of 5 strategies, some of them infeasible."""
    rng = np.random.default_rng(3)
    slices = np.repeat(np.arange(40), 5)
    seconds, feasible = rng.lognormal(size=200), rng.random(200) < 0.7
    seconds[rng.random(200) < 0.1] = np.nan
    feasible[np.isnan(seconds)] = False
    truth = make_answers(seconds, feasible)
    guess = make_answers(
        np.nan_to_num(seconds, nan=1.0) * rng.lognormal(sigma=0.5, size=200),
        feasible ^ (rng.random(200) < 0.1),
    )
    order = rng.permutation(200)  # rows of a slice need not be neighbours
    tables = (table.iloc[order].reset_index(drop=True) for table in (truth, guess))
    return *tables, slices[order]


def try_strategies(truth, guess, rows):
    """The pick's time over the best, by trying one after the other, as a planner would."""
    best = min(truth.epoch_time[row] for row in rows if truth.feasible[row])
    tries = 0
    for is_feasible in (True, False):
        candidates = [row for row in rows if guess.feasible[row] == is_feasible]
        for row in sorted(candidates, key=lambda row: guess.epoch_time[row]):
            tries += 1
            if truth.feasible[row]:
                return truth.epoch_time[row] / best - 1, tries > 1
    raise AssertionError


def test_regret_is_that_of_trying_one_after_the_other(made_up):
    truth, guess, slices = made_up
    groups = [np.flatnonzero(slices == number) for number in range(40)]
    tried = [
        try_strategies(truth, guess, rows) for rows in groups if truth.feasible[rows].sum() > 1
    ]
    regrets = np.array([regret for regret, _ in tried])
    scores = score_slices(truth, guess, slices)
    assert scores["slices"] == len(tried) > 30
    assert scores["mean_regret"] == pytest.approx(regrets.mean())
    assert scores["median_regret"] == pytest.approx(np.median(regrets))
    assert scores["p95_regret"] == pytest.approx(np.percentile(regrets, 95))
    assert scores["forbidden_picks"] == np.mean([failed for _, failed in tried])
    assert 0 < sum(failed for _, failed in tried) < len(tried)


def test_the_truth_regrets_nothing(made_up):
    truth, _, slices = made_up
    guess = truth.fillna({EPOCH: 1.0})
    scores = score_slices(truth, guess, slices)
    assert (scores["mean_regret"], scores["kendall_tau"], scores["forbidden_picks"]) == (0, 1, 0)
    assert score_rows(truth, guess) == {
        "r2_log_time": 1.0,
        "median_error": 0.0,
        "p95_error": 0.0,
        "feasibility_f1": 1.0,
    }


def test_tau_counts_pairs():
    known = np.array([1.0, 2.0, 3.0, 4.0])
    assert measure_tau(known, known[::-1]) == -1
    assert measure_tau(known, np.array([2.0, 1.0, 3.0, 4.0])) == pytest.approx(4 / 6)


def test_r2_and_errors_are_of_logarithms_and_of_times():
    truth = make_answers([1.0, 10.0, 100.0], [True, True, False])
    guess = make_answers([1.1, 10.0, 100.0], [True, False, True])
    scores = score_rows(truth, guess)
    spread = 2 * np.log(10) ** 2
    assert scores["r2_log_time"] == pytest.approx(1 - np.log(1.1) ** 2 / spread)
    assert scores["median_error"] == pytest.approx(0)
    assert scores["p95_error"] == pytest.approx(0.09)
    assert scores["feasibility_f1"] == pytest.approx(0.5)


def test_nothing_to_choose_is_no_score():
    truth = make_answers([1.0, 2.0], [True, False])
    assert score_slices(truth, truth, np.array([0, 0]))["mean_regret"] is None


def make_rows() -> pd.DataFrame:
    """16 slices of four strategies; the time, and a feature, is the number of the slice."""
    points = np.repeat(np.arange(1.0, 17), 4)
    strategies = np.tile(["data", "filter", "channel", "spatial"], 16)
    columns = dict.fromkeys((EPOCH, *TARGETS, "batch"), points)
    facts = {"slice": points.astype(int), "strategy": strategies, "feasible": True}
    return pd.DataFrame(columns | facts)


def test_the_nearest_row_answers() -> None:
    rows = make_rows()
    near = Neighbours(fit_encoding(rows, ["batch"]), rows)
    query = rows.assign(batch=rows.batch * 1.01, strategy="unknown")
    for frame in (query, query.assign(strategy=rows.strategy)):
        answers = near.answer(frame)
        np.testing.assert_allclose(answers[EPOCH], 2 * rows[EPOCH], rtol=1e-6)


def test_strategies_of_a_slice_are_answered_from_one_slice(monkeypatch) -> None:
    monkeypatch.setattr(evaluate, "KEPT", 20)
    rows = make_rows()
    answers = Neighbours(fit_encoding(rows, ["batch"]), rows).answer(rows)
    seconds = answers[EPOCH].to_numpy()
    assert len(np.unique(seconds)) == 5
    assert (np.ptp(seconds.reshape(16, 4), axis=1) == 0).all()


def test_habit_ranks_by_wins():
    frame = pd.DataFrame(
        {
            "slice": [0, 0, 1, 1, 2, 2],
            "strategy": ["data", "filter"] * 3,
            "epoch_time": [1.0, 2.0, 3.0, 2.0, 1.0, 5.0],
            "feasible": [True, True, True, True, True, False],
        }
    )
    assert Habit(frame).ranks == {"data": 1.0, "filter": 2.0}
