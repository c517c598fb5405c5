import io
import json
from contextlib import redirect_stdout
from typing import Any

import sweep
from sweep.questions import catalogue
from sweep.show.explanations import show_entries, show_explanation

EXPLAINED = sweep.explain("alexnet", "data+spatial", 8, 64, dataset="imagenet")


def test_an_explanation_has_three_parts(capsys):
    show_explanation(EXPLAINED, "table")
    out = capsys.readouterr().out
    assert "Terms" in out
    assert "Layers" in out
    assert "halo_exchange" in out
    assert "gathered_items" not in out  # zero throughout


def test_an_explanation_as_json_and_csv(capsys):
    show_explanation(EXPLAINED, "json")
    assert json.loads(capsys.readouterr().out) == EXPLAINED
    show_explanation(EXPLAINED, "csv")
    assert capsys.readouterr().out.startswith("layer,kind,x,y,weights,biases,split")


def printed(kind: str, form: Any) -> str:
    with redirect_stdout(io.StringIO()) as out:
        show_entries(getattr(catalogue, kind)(), form)
    return out.getvalue()


def test_the_catalogue_fits_a_screen():
    for kind in ("models", "datasets", "systems", "strategies"):
        assert max(map(len, printed(kind, "table").splitlines())) <= 150


def test_levels_are_read_by_people_and_programs():
    assert "leaf, 68 PEs: 40.31 us, 12.5 GB/s" in printed("systems", "table")
    (abci,) = [row for row in json.loads(printed("systems", "json")) if row["system"] == "abci"]
    level = {"name": "leaf", "pes": 68, "latency": 40.31e-6, "bandwidth": 12.5e9}
    assert level in abci["levels"]
    assert abci["source"]


def test_the_catalogue_in_csv_has_sources():
    assert "source" in printed("models", "csv").splitlines()[0]
