"""Quantities with units: exactly the decimal's float, and clear refusals."""

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.reading import units
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.units import format_quantity, parse_duration, parse_quantity


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
        ("80%", "1", 0.8),
        ("12.5 %", "1", 0.125),
        # Amounts are decimal; counts of PEs, samples and tokens of a sequence are powers of two.
        ("15T", "amount", 15e12),
        ("1.5 B", "amount", 1.5e9),
        ("300G", "amount", 300e9),
        ("1e6", "amount", 1e6),
        ("100k", "amount", 100e3),
        ("8k", "count", 8192),
        ("128K", "count", 131072),
        ("1M", "count", 2**20),
        ("8e3", "count", 8000),
        ("60 d", "s", 60 * 86400),
        ("2 weeks", "s", 14 * 86400),
        ("1h30m", "s", 5400),
        ("1 d 2h 3.5 min", "s", 93810),
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
    with pytest.raises(InputError, match=r"expected a number, got '3 B'; write it like '0.8'"):
        parse_quantity("3 B", "1", "")


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        *((text, "count") for text in ("8.5", "10%", "8 GB", "64,128", "1..64", "1-64", "2T", "")),
        *((text, "amount") for text in ("1.5m", "1,000", "15t", "15 T B", "0.5", "k")),
        *((text, "1") for text in ("8k", "80 percent", "%", "8%%")),
        *((text, "s") for text in ("30m", "1h1h", "10 s 1 h", "1m30s", "1h30", "tomorrow")),
    ],
)
def test_other_texts_are_no_numbers(text: str, unit: str) -> None:
    with pytest.raises(InputError, match=r"^--pe: expected .*, got .*; write it like '"):
        parse_quantity(text, unit, "--pe")


@pytest.mark.parametrize(
    ("text", "meanings"), [("10k", "10,000 or 10,240"), ("1.5k", "1,500 or 1,536")]
)
def test_a_count_with_two_meanings_is_refused(text: str, meanings: str) -> None:
    with pytest.raises(InputError, match=f"{text}.*{meanings}; write all digits"):
        parse_quantity(text, "count", "")


def test_a_duration_states_its_unit() -> None:
    assert parse_duration("60 d", "deadline", "6 h") == 60 * 86400
    assert parse_duration(60, "deadline", "6 h") == 60
    for value in ("60", "0 s", "-2 h", 0, None):
        with pytest.raises(InputError, match=r"^deadline: "):
            parse_duration(value, "deadline", "6 h")


@pytest.mark.parametrize("text", ["32 Gb", "32 Gbit", "32Gb"])
def test_memory_in_bits_is_asked_about(text):
    with pytest.raises(InputError, match=r"32 ?GB"):
        parse_quantity(text, "B", "memory_capacity")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        *((0, "B", "0 B"), (999, "B", "999 B"), (1e3, "B", "1 kB"), (-1e3, "B", "-1 kB")),
        *((16e9, "B", "16 GB"), (1e-3, "B", "1 mB"), (9e-6, "s", "9 us")),
        *((0.00123, "s", "1.23 ms"), (15.7e12, "FLOP/s", "15.7 TFLOP/s")),
        *((0.8, "1", "0.8"), (1.5e-8, "1", "1.5e-08")),  # a factor has none
    ],
)
def test_a_quantity_has_the_largest_prefix_that_leaves_a_whole(
    value: float, unit: str, text: str
) -> None:
    assert format_quantity(value, unit) == text


@pytest.mark.parametrize("unit", ["B/s", "s", "B", "FLOP/s", "W"])
def test_units_that_need_no_pint_are_those_of_pint(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(text: str) -> float | None:
        try:
            return parse_quantity(text, unit, "here")
        except InputError:
            return None

    bases = ("B", "bit", "s", "B/s", "bit/s", "FLOP/s", "W")
    texts = [f"1.1 {prefix}{base}" for prefix in units.PLAIN for base in bases]
    found = {text: read(text) for text in texts}
    monkeypatch.setattr(units, "PLAIN", {})
    units._find_factor.cache_clear()
    assert {text: read(text) for text in texts} == found
    assert any(found.values())
    units._find_factor.cache_clear()
