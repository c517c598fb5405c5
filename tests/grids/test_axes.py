"""Axes: lists and generators in any combination, sorted and without duplicates."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.axes import GENERATORS, MOST_VALUES, expand_axis
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.reading.errors import InputError

PE, GAMMA, LATENCY = (PARAMETERS[name] for name in ("pe", "gamma", "intra_latency"))
BANDWIDTH = PARAMETERS["inter_bandwidth"]


@pytest.mark.parametrize(
    ("form", "values"),
    [
        (8, [8]),
        ([8], [8]),
        ([8, 2, 8, 4], [2, 4, 8]),
        ({"pow2": [1, 8]}, [1, 2, 4, 8]),
        ({"pow2": [4, 17]}, [4, 8, 16]),
        ({"range": [1, 4]}, [1, 2, 3, 4]),
        ({"range": [1, 8, 3]}, [1, 4, 7]),
        ({"range": [1, 7, 3]}, [1, 4, 7]),
        ({"range": [5, 5]}, [5]),
        ({"linspace": [1, 10, 4]}, [1, 4, 7, 10]),
        ({"linspace": [1, 10, 3]}, [1, 6, 10]),  # counts are whole
        ({"linspace": [1, 4, 4]}, [1, 2, 3, 4]),
        ({"geomspace": [1, 8, 20]}, [1, 2, 3, 4, 5, 6, 7, 8]),  # as is customary
        ({"geomspace": [1, 1000, 4]}, [1, 10, 100, 1000]),
        ([3, {"pow2": [2, 8]}, {"range": [7, 9]}], [2, 3, 4, 7, 8, 9]),
        # As on the command line.
        ("1..4", [1, 2, 3, 4]),
        ("1...4", [1, 2, 3, 4]),
        ("pow2:1..4", [1, 2, 4]),
        ("pow2: 1 - 4", [1, 2, 4]),
        (["pow2:512-2k", 3], [3, 512, 1024, 2048]),
        ({"pow2": [512, "1k"]}, [512, 1024]),
        (["1e3", "8k"], [1000, 8192]),
    ],
)
def test_values_of_pes(form, values) -> None:
    assert list(expand_axis(form, PE).values) == values


def test_units_are_read_everywhere() -> None:
    form = ["1 GB/s", {"linspace": ["2 GB/s", "4 GB/s", 3]}, {"range": ["5 GB/s", 7e9, "1 GB/s"]}]
    assert list(expand_axis(form, BANDWIDTH).values) == [n * 1e9 for n in range(1, 8)]


def test_both_ends_of_a_range_are_in_it_whatever_the_rounding() -> None:
    values = expand_axis({"range": [0.1, 1, 0.1]}, GAMMA).values
    assert values == pytest.approx([n / 10 for n in range(1, 11)])
    assert values[-1] == 1


@given(st.lists(st.integers(1, 1000), min_size=1))
def test_ascending_and_once(values) -> None:
    assert list(expand_axis(values, PE).values) == sorted(set(values))


def test_the_users_form_is_kept_and_does_not_count() -> None:
    listed, generated = expand_axis([1, 2, 4], PE), expand_axis({"pow2": [1, 4]}, PE)
    assert generated.form == {"pow2": [1, 4]}
    assert listed == generated


@pytest.mark.parametrize(
    ("form", "parameter", "message"),
    [
        ([], PE, "got an empty list"),
        (None, PE, "got None"),
        ([1, None], PE, "got None"),
        ([True], PE, "got True"),
        ([-1], PE, "1"),
        ([1.5], PE, "got 1.5"),
        ("1..", PE, "expected a range, got '1..'"),
        (["1", "024"], PE, "thousands without a comma"),
        ("1-8", PE, "got '1-8'; write the range as '{range: [1, 8]}'"),
        ([[1, 2]], PE, "got [1, 2]"),
        ({"pow": [1, 8]}, PE, "got {'pow': [1, 8]}; did you mean 'pow2'? known: geomspace, lins"),
        ({}, PE, "got {}"),
        ({"pow2": [1, 2], "range": [1, 2]}, PE, "got {'pow2'"),
        ({"pow2": [1]}, PE, "got [1]"),
        ({"pow2": 8}, PE, "got 8"),
        ({"range": [1, 8, 2, 3]}, PE, "expected 2 or 3 values of range, got"),
        ({"geomspace": [1, 8]}, PE, "got [1, 8]"),
        ({"pow2": [5, 7]}, PE, "5"),
        ({"pow2": [3, 100]}, PE, "got 3"),
        ({"range": [1, 64, 10000]}, PE, "range:"),
        ({"linspace": [1, 4, 9]}, PE, "4"),
        ({"linspace": [5, 5, 3]}, PE, "got 5 twice"),
        ({"geomspace": [5, 5, 3]}, PE, "got 5 twice"),
        ([[[[[["deep"]]]]]], PE, "got [[[[...]]]]"),
        ([*range(1, 99), "x" * 10**6], PE, "got 'xxxx"),
        ({"pow2": [1] * 10**5}, PE, "got [1, 1, 1, 1, 1, 1, ...]"),
        ({"pow2": [0, 1]}, LATENCY, "got 0"),
        ({"geomspace": [0, 1, 3]}, LATENCY, "got 0"),
        ({"range": [8, 1]}, PE, "got [8, 1]"),
        ({"linspace": [8, 1, 2]}, PE, "expected the first value not above the last"),
        ({"range": [1, 8, 0]}, PE, "range:"),
        ({"range": [1, 8, 0.5]}, PE, "range:"),
        ({"range": [0, 1, -0.5]}, LATENCY, "range:"),
        ({"range": [0, 1, "1 B"]}, LATENCY, "got '1 B'"),
        ({"range": ["1 GB/s", "9 GB/s", 1e-300]}, BANDWIDTH, "range: a step of 1e-300 is too sma"),
        ({"linspace": [1, 8, 1]}, PE, "got 1"),
        ({"linspace": [1, 8, 2.5]}, PE, "got 2.5"),
        ({"range": [1, 1e9]}, PE, "got 1,000,000,000"),
        ({"linspace": [1, 2, 1e9]}, GAMMA, "got 2"),
        ({"linspace": [0.5, 1, 1e9]}, GAMMA, "got 1,000,000,0"),
        (["3 GB"], BANDWIDTH, "got '3 GB'"),
        ([float("nan")], GAMMA, "got nan"),
    ],
)
def test_bad_forms(form, parameter, message) -> None:
    with pytest.raises(InputError) as error:
        expand_axis(form, parameter)
    assert message in str(error.value)


def test_many_parts_count_together() -> None:
    halves = [{"range": [1, MOST_VALUES]}, 1, *[{"range": [1, MOST_VALUES]}] * 1000]
    with pytest.raises(InputError, match="expected at most 10,000,000 values, got 10,000,001"):
        expand_axis(halves, PE)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_example_of_a_message_can_be_written(name) -> None:
    form = yaml.safe_load(
        GENERATORS[name].example.replace("1e9", "1.0e+9").replace("1e12", "1.0e+12")
    )
    assert expand_axis(form, BANDWIDTH if name == "geomspace" else PE).values.size
