"""Suggestions for misspelt names."""

import pytest

from paradl.grids.entries.parameters import FOLLOWS, FREE
from paradl.grids.reading.errors import InputError, suggest_name
from paradl.grids.spec import validate_spec


def test_numbers_are_no_neighbours_by_their_digits():
    assert suggest_name("2000", ["20", "200"]) == "known: 20, 200"
    assert suggest_name("alexnt", ["alexnet"]) == "did you mean 'alexnet'? known: alexnet"


@pytest.mark.parametrize("name", FOLLOWS)
def test_what_follows_from_other_parameters_names_them(name):
    axes = {"model": "alexnet", "dataset": "imagenet", "system": "abci", "pe": 1, "batch": 1}
    with pytest.raises(InputError, match=f"'{name}' follows from other parameters; set "):
        validate_spec({"axes": axes, "parameters": {name: 1}}, "")


def test_what_is_told_to_set_can_be_set():
    named = {word for text in FOLLOWS.values() for word in text.split() if "_" in word}
    assert named <= set(FREE)
