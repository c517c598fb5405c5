"""A cube with an axis of layouts: questions answer over all of them, and write them in words."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from open_answers import list_needs

import paradl
from paradl.grids.grid import read_grid
from paradl.grids.reading.errors import InputError

ROWS = {"tensor": [2, 8], "pipeline": [1, 2], "zero": [0, 1]}
SPEC: dict[str, Any] = {
    "scaling": "strong",
    "axes": {
        "model": "llama3_8b",
        "dataset": "pile:length=2048",
        "system": "dgx-h100",
        "strategy": "data+tensor+pipeline",
        "pe": [16, 64],
        "batch": [128, 256],
        "layout": {"product": ROWS},
    },
}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    where = str(tmp_path_factory.mktemp("layouts") / "cube.zarr")
    paradl.run(SPEC, where)
    return where


def test_words_name_the_layout_of_a_row(url):
    """What they say, `predict` answers for with the same time."""
    row = paradl.best(url).iloc[0]
    place = {name: SPEC["axes"][name] for name in ("model", "dataset", "system")}
    asked = {"global_batch": int(row["batch"]), "strategy": row["layout"], "pe": int(row["pe"])}
    alone = paradl.predict(**place, **asked)
    assert alone["iteration_time"] == pytest.approx(row["iteration_time"], rel=1e-5)
    assert alone["tokens_per_pe_second"] == pytest.approx(row["tokens_per_pe_second"], rel=1e-5)


def provision(cube):
    return paradl.provision(cube, "90 d", epochs=1)


def needs(cube):
    return paradl.needs(cube, "inter_bandwidth", efficiency=0.5, pe=16, batch=256)


@pytest.mark.parametrize(
    "question", [paradl.pareto, paradl.bottleneck, paradl.sensitivity, provision, needs]
)
def test_rows_state_words_and_columns(url, question):
    for _, row in pd.DataFrame(question(url)).iterrows():
        words = row["layout"].split()
        assert f"tp{row['tensor']}" in words
        assert f"pp{row['pipeline']}" in words


def test_limits_are_those_of_the_layout_that_scales_furthest(url):
    rows, every = paradl.limits(url), paradl.limits(url, every_layout=True)
    assert len(rows) == 2
    assert len(every) == 2 * np.prod([len(values) for values in ROWS.values()])
    for _, row in rows.iterrows():
        rivals = every[every["batch"] == row["batch"]]
        assert row["fastest_time"] == rivals["fastest_time"].min()
        assert row["tokens_per_second"] == pytest.approx(row["samples_per_second"] * 2048)
        words = f"dp{64 // (row['tensor'] * row['pipeline'])}"
        assert words in row["layout"].split()


def test_tables_show_words_in_place_of_columns(url, cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for verb in ("best", "limits", "bottleneck", "pareto", "sensitivity"):
        code, out, err = cli(verb, url)
        assert code == 0, err
        assert " dp" in out
        assert "tensor" not in out.replace("tensor_exchange", "").replace("+tensor+", "")
        assert max(map(len, out.splitlines())) <= 80


def test_chunks_need_a_bandwidth_as_other_rows_do():
    """Efficiency is relative to one PE, which has no stages and so no chunks."""
    rows = {"product": {"tensor": [2], "pipeline": [2], "chunks": [1, 2], "micro": [1]}}
    axes = SPEC["axes"] | {"pe": [16], "batch": [256], "layout": rows}
    space = read_grid({"scaling": "strong", "axes": axes})
    plain, chunked = list_needs(space, "inter_bandwidth", efficiency=0.3)
    assert 0 < chunked["needed"] < plain["needed"]


def test_a_deadline_is_met_by_a_layout_in_words(url, cli):
    code, out, err = cli("provision", url, "--deadline", "90d", "--epochs", "1")
    assert code == 0, err
    row = provision(url).iloc[0]
    assert f"with {row['layout']}, global batch" in out
    assert f"{row['layout']}, pe {row['pe']}, batch {row['batch']}\n" in out


def test_crossovers_name_the_columns_that_both_strategies_have():
    """Of one row each strategy has a layout of its own."""
    axes = SPEC["axes"] | {"strategy": ["data+tensor+pipeline", "data+tensor"], "batch": 256}
    rows = {"product": {"tensor": [2], "pipeline": [1, 2], "micro": [1]}}
    space = read_grid({"scaling": "strong", "axes": axes | {"layout": rows}})
    for along in ("pe", "batch", "inter_bandwidth"):
        crossed = paradl.crossovers(space, along)
        assert {*crossed["pipeline"]} == {1, 2}
        assert "layout" not in crossed


def test_words_select_a_row(url):
    every = paradl.limits(url, every_layout=True)
    words = "tp8 pp2 dp4 mb2 zero1"
    rows = paradl.limits(url, layout=words)
    assert rows["tensor"].tolist() == [8, 8]
    expected = every[(every["tensor"] == 8) & (every["pipeline"] == 2) & (every["zero"] == 1)]
    assert rows["fastest_time"].tolist() == expected["fastest_time"].tolist()
    assert {*paradl.limits(url, layout=[words, "tp2 pp1"], every_layout=True)["tensor"]} == {2, 8}
    with pytest.raises(InputError, match="no layout 'tp4 pp2' in this cube"):
        paradl.limits(url, layout="tp4 pp2")


def test_words_select_a_row_beside_values_that_are_near(url, cli):
    words = "tp8 pp2 dp4 mb2 zero1"
    near = ("--nearest", "--sel", "pe=60", "--sel", f"layout={words}", "--format", "json")
    code, out, err = cli("best", url, *near)
    assert code == 0, err
    assert {(row["pe"], row["tensor"], row["pipeline"]) for row in json.loads(out)} == {(64, 8, 2)}


def test_best_lists_rows_beside_the_first(url):
    """Each at its best batch and number of PEs, as many as there are."""
    every = paradl.limits(url, every_layout=True).dropna(subset="fastest_time")
    least = every.groupby([*ROWS])["fastest_time"].min().sort_values()
    rows = paradl.best(url, layouts=4)
    assert rows["epoch_time"].tolist() == pytest.approx(least.tolist()[:4], rel=1e-6)
    assert len({*rows["layout"]}) == 4
    assert rows["rank"].tolist() == [1, 2, 3, 4]
    with pytest.raises(InputError, match="layouts: expected 1 or more, got 0"):
        paradl.best(url, layouts=0)


def test_with_a_deadline_rows_have_the_cheapest_cell_that_meets_it(tmp_path):
    law: dict[str, Any] = {
        "name": "once",
        "model": "llama3_8b",
        "dataset": "pile",
        "target": "loss<=2",
    }
    law |= {"epochs_min": 1, "critical_batch": 1_000_000}
    url = tmp_path / "cube.zarr"
    paradl.run(SPEC | {"convergence": [law]}, url)
    cheap = paradl.best(url, layouts=99, objective="pe_hours")
    met = paradl.best(url, layouts=99, objective="pe_hours", deadline="18 d")
    assert {*cheap["pe"]} == {16, 64}
    assert {*met["pe"]} == {64}
    assert len(met) == len(cheap)
    assert (met["train_time"] <= 18 * 86400).all()
