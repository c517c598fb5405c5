import json

import sweep
from sweep.show.explanation import show_explanation

EXPLAINED = sweep.explain("alexnet", "data+spatial", 8, 64, dataset="imagenet")


def test_an_explanation_has_three_parts(capsys):
    show_explanation(EXPLAINED, "table")
    out = capsys.readouterr().out
    assert "Terms" in out
    assert "Layers" in out
    assert "halo_exchange" in out
    assert "gathered_items" not in out  # zero throughout


def test_what_is_hidden_stands_below_the_terms(capsys):
    told = sweep.explain("alexnet", "data", 8, 64, dataset="imagenet", system="abci:software=ddp")
    show_explanation(told, "table")
    terms, hidden = capsys.readouterr().out.split("Beside the terms: no part of the time")
    assert "hidden_communication" not in terms
    assert "hidden_communication" in hidden


def test_an_explanation_as_json_and_csv(capsys):
    show_explanation(EXPLAINED, "json")
    assert json.loads(capsys.readouterr().out) == EXPLAINED
    show_explanation(EXPLAINED, "csv")
    assert capsys.readouterr().out.startswith("layer,kind,x,y,weights,biases,split")
