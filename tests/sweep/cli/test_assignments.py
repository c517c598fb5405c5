import pytest

from grids.reading.errors import InputError
from sweep.cli.assignments import parse_selection, parse_settings


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


def test_settings_stand_parse_settings():
    assert parse_settings(["gamma=0.5", "delta=2"], "--set") == {"gamma": "0.5", "delta": "2"}
    with pytest.raises(InputError, match="--set: expected each name once"):
        parse_settings(["gamma=0.5", "gamma=1"], "--set")


@pytest.mark.parametrize("item", ["gamma", "=1", "gamma=", " = "])
def test_what_is_no_pair(item):
    with pytest.raises(InputError, match="--set: expected name=value, got"):
        parse_settings([item], "--set")
