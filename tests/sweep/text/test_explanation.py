import csv
import json

import pytest

import paradl
from paradl.sweep.text.explanation import show_explanation

EXPLAINED = paradl.explain(
    "alexnet", "data+spatial", 8, 64, dataset="imagenet", system="abci"
).to_dict()


def test_an_explanation_has_its_parts(capsys):
    show_explanation(EXPLAINED, "table")
    out = capsys.readouterr().out
    assert all(title in out for title in ("Terms", "Memory of the fullest PE", "Launch"))
    assert "Symbols" not in out
    assert "halo_exchange" in out
    assert "torchrun --nnodes=2 --nproc-per-node=4 train.py" in out
    assert '(2, 4), mesh_dim_names=("data", "spatial")' in out
    assert "conv1" not in out
    assert out.endswith("21 layers: --layers-table\nParameters and symbols: --all\n")
    show_explanation(EXPLAINED, "table", every=True)
    out = capsys.readouterr().out
    assert "Symbols" in out
    assert "Parameters" in out


def test_layers_have_a_table_of_their_own(capsys):
    show_explanation(EXPLAINED, "table", layers=True)
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "alexnet, imagenet, abci, data+spatial, pe 8, batch 64"
    assert "64x55x55" in "".join(rows)
    assert "gathered_items" not in rows[0]  # zero throughout
    show_explanation(EXPLAINED, "json", layers=True)
    assert json.loads(capsys.readouterr().out) == EXPLAINED["layers"]


def test_a_narrow_terminal_keeps_what_was_asked_for(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    show_explanation(EXPLAINED, "table", layers=True)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert all(key in lines[2] + lines[1] for key in ("output", "split", "weights", "memory"))


def test_what_is_hidden_stands_below_the_terms(capsys):
    answer = paradl.explain(
        "alexnet", "data", 8, 64, dataset="imagenet", system="abci:software=ddp"
    )
    show_explanation(answer.to_dict(), "table")
    terms, hidden = capsys.readouterr().out.split("Hidden: no part of the time")
    assert "hidden_communication" not in terms
    assert "hidden_communication" in hidden
    assert "part" not in hidden.splitlines()[1]


def test_an_explanation_as_json_and_csv(capsys):
    show_explanation(EXPLAINED, "json")
    assert json.loads(capsys.readouterr().out) == EXPLAINED
    show_explanation(EXPLAINED, "csv", layers=True)
    assert capsys.readouterr().out.startswith("layer,kind,output,x,y,weights,biases,macs")
    show_explanation(EXPLAINED, "csv")
    rows = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    assert [row["formula"] for row in rows] == [
        row["formula"]
        for row in (*EXPLAINED["formulas"], *EXPLAINED["hidden"], *EXPLAINED["memory_formulas"])
    ]
    for of in ("time", "memory"):
        assert sum(float(row["share"]) for row in rows if row["of"] == of) == pytest.approx(1)


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_layout_without_rows_of_layers_says_so(form, cli):
    """On stderr: JSON has no rows."""
    asked = ("--model", "llama2_7b", "--system", "dgx-h100", "--pe", 8, "--batch", 8)
    options = ("--strategy", "dp8 zero1", "--layers-table", "--format", form)
    code, out, err = cli("explain", *asked, *options)
    assert (code, out.strip(), err.count("\n")) == (0, "[]" if form == "json" else "", 1)
    assert "--layers-table" in err
