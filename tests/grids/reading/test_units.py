"""Quantities with units: exactly the decimal's float, and clear refusals."""

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grids.reading.errors import InputError
from grids.reading.units import parse_quantity


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("12.5 GB/s", "B/s", 12.5e9),
        ("12.5GB/s", "B/s", 12.5e9),
        ("100 Gbit/s", "B/s", 12.5e9),
        ("100 Gbps", "B/s", 12.5e9),
        ("3.35 TB/s", "B/s", 3.35e12),
        ("40.31 us", "s", 40.31e-6),  # not 40.31 * 1e-6, which is the next float
        ("40.31 µs", "s", 40.31e-6),
        ("9 us", "s", 9e-6),
        ("3 ms", "s", 3e-3),
        ("2 min", "s", 120.0),
        ("16 GB", "B", 16e9),
        ("16 GiB", "B", 16.0 * 2**30),
        ("5EB", "B", 5e18),  # exa, not an exponent
        ("15.7 TFLOP/s", "FLOP/s", 15.7e12),
        ("15.7 TFLOPS", "FLOP/s", 15.7e12),
        ("7.8E12 FLOPS", "FLOP/s", 7.8e12),
        ("1200 W", "W", 1200.0),
        ("1.2 kW", "W", 1200.0),
        ("1e9", "B/s", 1e9),
        (" 0.5 ", "1", 0.5),
    ],
)
def test_text(text: str, unit: str, value: float) -> None:
    assert parse_quantity(text, unit, "") == value


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53))
def test_a_number_is_in_the_unit_already(value: float) -> None:
    assert parse_quantity(value, "B/s", "") == value
    assert parse_quantity(repr(value), "B/s", "") == value


@pytest.mark.parametrize(
    "value",
    [
        "3 GB",
        "3 s",
        "3 foo",
        "",
        "GB/s",
        "3 /s",
        "3 GB/",
        "9**9**9",
        "1e999",
        "1e999999 GB/s",
        "1e9999999999999999999 GB/s",
        True,
        None,
        [1.0],
    ],
)
def test_refused(value: object) -> None:
    with pytest.raises(InputError) as error:
        parse_quantity(value, "B/s", "abci.yaml:7")
    assert str(error.value) == (
        f"abci.yaml:7: expected a value in B/s, got {value!r}; write it like '12.5 GB/s'"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
def test_not_finite(value: float) -> None:
    with pytest.raises(InputError, match="expected a value in s, got"):
        parse_quantity(value, "s", "")


@pytest.mark.parametrize("text", ["9" * 10**6 + "x", "1e" + "9" * 10**6, "B" * 10**6])
def test_a_text_of_a_million_characters_is_no_quantity(text: str) -> None:
    with pytest.raises(InputError) as error:
        parse_quantity(text, "B/s", "")
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("suffix", [*keyword.kwlist, "B/if", "s/None", "nan", "inf", "Ki", "µ"])
def test_words_that_mean_something_to_python_are_no_units(suffix: str) -> None:
    with pytest.raises(InputError, match="expected a value in B/s"):
        parse_quantity(f"3 {suffix}", "B/s", "")


def test_a_factor_has_no_unit() -> None:
    with pytest.raises(InputError, match=r"expected a number, got '3 B'; write it like '1'"):
        parse_quantity("3 B", "1", "")


@pytest.mark.parametrize("text", ["32 Gb", "32 Gbit", "32Gb"])
def test_memory_in_bits_is_asked_about(text):
    with pytest.raises(InputError, match=r"32 ?GB"):
        parse_quantity(text, "B", "memory_capacity")
