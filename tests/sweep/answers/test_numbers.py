import numpy as np
import pytest

from sweep.answers.numbers import find_range, finite, name_range, number


@pytest.mark.parametrize("value", [2, 2.0, np.array(2), np.array([[2.0]])])
def test_the_only_value_is_taken(value):
    assert number(value) == 2.0
    assert type(number(value)) is float


@pytest.mark.parametrize("values", [np.zeros(2), np.zeros((0, 3))])
def test_several_values_or_none_are_no_number(values):
    with pytest.raises(ValueError, match="size 1"):
        number(values)


def test_nan_is_none():
    assert finite(float("nan")) is None
    assert finite(0.5) == 0.5


def test_ranges_are_percentiles():
    assert find_range(np.arange(101.0)) == (10.0, 90.0)
    assert name_range("share", np.array([1.0, np.nan])) == {"share_p10": None, "share_p90": None}
