import pytest

from grids.reading.errors import InputError
from sweep.cli.option_messages import speak_of_options


def test_messages_speak_of_options():
    with pytest.raises(InputError) as told, speak_of_options():
        raise InputError("axes.pe: too few\nparameters: gamma: too many\naxes.strategy.0: unknown")
    assert str(told.value) == "--pe: too few\n--set: gamma: too many\n--strategy: unknown"
