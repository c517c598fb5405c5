"""Values of options: pairs, and whole numbers."""

import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.cli.options import parse_counts, parse_selection, parse_settings


def test_selections_add_up():
    assert parse_selection(["pe=4", " model = vgg16", "pe=8,16"]) == {
        "pe": ["4", "8,16"],
        "model": ["vgg16"],
    }
    assert parse_selection(None) == {}


def test_a_value_may_have_an_equals_sign():
    assert parse_selection(["strategy=data+filter:group=8"]) == {
        "strategy": ["data+filter:group=8"]
    }


def test_a_setting_stands_once():
    assert parse_settings(["gamma=0.5", "delta=2"], "--set") == {"gamma": "0.5", "delta": "2"}
    with pytest.raises(InputError, match="--set: expected each name once"):
        parse_settings(["gamma=0.5", "gamma=1"], "--set")


@pytest.mark.parametrize("item", ["gamma", "=1", "gamma=", " = "])
def test_a_pair_has_a_name_and_a_value(item):
    with pytest.raises(InputError, match="--set: expected name=value, got"):
        parse_settings([item], "--set")


def test_counts_are_one_or_several():
    assert parse_counts("96", "--pe") == 96
    assert parse_counts("96, 128", "--pe") == [96, 128]
    assert parse_counts("8,8,4k, pow2:1-4", "--pe") == [1, 2, 4, 8, 4096]
    with pytest.raises(InputError, match="--pe: expected a whole number"):
        parse_counts("many", "--pe")
