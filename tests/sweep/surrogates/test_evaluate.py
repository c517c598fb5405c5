"""Splits are scored on rows that were not trained on, next to baselines."""

import json
import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

from paradl.grids.reading.errors import InputError
from paradl.sweep.cli.main import app
from paradl.sweep.surrogates.evaluate import Answers, evaluate_surrogate, score_rows, score_slices
from paradl.sweep.surrogates.surrogate import predict_surrogate


def test_each_split_is_scored_beside_baselines(trained, drawn):
    rows = evaluate_surrogate(trained, drawn.path)
    scored = [(row["split"], row["method"]) for row in rows if "note" not in row]
    methods = ("network", "neighbour", "habit")
    assert scored == [(split, method) for split in ("random", "model") for method in methods]
    notes = {row["split"]: row["note"] for row in rows if "note" in row}
    assert set(notes) == set(drawn.splits) - {"random", "model"}
    assert "scale" in notes["scale"]


def test_scores_are_of_rows_that_were_not_trained_on(trained, drawn):
    """As a user would: the test rows of the split by pandas, the surrogate by its function."""
    frame = pd.read_parquet(drawn.path / "data")
    tested = frame[(frame.split_model == "test") & (frame.split_random == "train")]
    predicted = predict_surrogate(trained, tested)
    truth = Answers(tested.epoch_time.to_numpy(float), tested.feasible.to_numpy(bool))
    guess = Answers(predicted.epoch_time.to_numpy(), predicted.feasible.to_numpy())
    expected = {**score_rows(truth, guess), **score_slices(truth, guess, tested.slice.to_numpy())}
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


def test_evaluating_reports_progress_in_a_pipe(trained, drawn, cli, monkeypatch):
    monkeypatch.setattr("paradl.sweep.engine.progress.PERIOD", 0.0005)
    code, _, err = cli("surrogate", "evaluate", trained, drawn.path)
    assert code == 0
    for split in ("random", "model"):
        assert f"paradl: {split}: network (" in err
