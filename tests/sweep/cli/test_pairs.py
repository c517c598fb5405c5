import pytest

from grids.reading.errors import InputError
from sweep.cli.pairs import named_as_options, once, selection


def test_selections_add_up():
    assert selection(["pe=4", " model = vgg16", "pe=8,16"]) == {
        "pe": ["4", "8,16"],
        "model": ["vgg16"],
    }
    assert selection(None) == {}


def test_a_value_may_have_an_equals_sign():
    assert selection(["strategy=data+filter:group=8"]) == {"strategy": ["data+filter:group=8"]}


def test_settings_stand_once():
    assert once(["gamma=0.5", "delta=2"], "--set") == {"gamma": "0.5", "delta": "2"}
    with pytest.raises(InputError, match="--set: expected each name once"):
        once(["gamma=0.5", "gamma=1"], "--set")


@pytest.mark.parametrize("item", ["gamma", "=1", "gamma=", " = "])
def test_what_is_no_pair(item):
    with pytest.raises(InputError, match="--set: expected name=value, got"):
        once([item], "--set")


def test_messages_speak_of_options():
    with pytest.raises(InputError) as told, named_as_options():
        raise InputError("axes.pe: too few\nparameters: gamma: too many\naxes.strategy.0: unknown")
    assert str(told.value) == "--pe: too few\n--set: gamma: too many\n--strategy: unknown"
