"""Answers in a notebook: tables, plain copies, and names that are nearly right."""

import json
from typing import Any

import pytest

import paradl

SPACE: dict[str, Any] = {"dataset": "imagenet-226", "system": "abci"}


@pytest.fixture(scope="module")
def answer():
    return paradl.predict("alexnet", "data", 8, 32, **SPACE)


def test_an_answer_is_its_json(answer):
    plain = answer.to_dict()
    assert type(plain) is dict
    assert json.loads(json.dumps(answer)) == plain == answer


def test_a_notebook_shows_each_field(answer):
    frame = answer.to_frame()
    assert frame.loc["iteration_time", "value"] == answer["iteration_time"]
    assert frame.loc["memory_parts.weights", "value"] == answer["memory_parts"]["weights"]
    html = answer._repr_html_()
    assert "iteration_time" in html
    assert len(html) < 20_000


def test_of_compared_runs_the_rows_are_the_table(tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text(
        "model,dataset,strategy,p,samples_per_replica,total_s\nresnet50,imagenet,data,8,32,0.121\n"
    )
    compared = paradl.compare(runs, system="abci")
    (row,) = compared.to_frame().to_dict("records")
    assert row["measured_total"] == 0.121
    ratio = row["measured_mfu"] / row["predicted_mfu"]
    assert ratio == pytest.approx(row["predicted_total"] / 0.121)


def test_the_accessor_has_html_without_markup_of_labels():
    cube = paradl.compute_space("alexnet", pe=[1, 8], batch=32, **SPACE)
    assert cube.paradl._repr_html_().startswith("<pre>&lt;paradl: 1 model")


def test_the_nearest_name_is_named():
    with pytest.raises(AttributeError, match="paradl has no 'predct'; did you mean 'predict'"):
        _ = vars(paradl)["__getattr__"]("predct")
