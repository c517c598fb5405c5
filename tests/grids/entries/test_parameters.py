"""Oracle parameters: units are read, values are SI, bounds hold."""

import pytest

from paradl.grids.entries.parameters import DEFAULTS, PARAMETERS
from paradl.grids.entries.quantity import MOST
from paradl.grids.reading.errors import InputError


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("inter_bandwidth", "12.5 GB/s", 12.5e9),
        ("inter_bandwidth", 25e9, 25e9),
        ("inter_bandwidth", "25e9", 25e9),
        ("inter_bandwidth", "25 B/s", 25.0),  # odd, and meant as written
        ("intra_latency", "40 s", 40.0),
        ("intra_latency", "9 us", 9e-6),
        ("intra_latency", 0, 0.0),
        ("peak_flops", "15.7 TFLOP/s", 15.7e12),
        ("memory_capacity", "16 GiB", 16 * 2**30),
        ("gamma", 1, 1.0),
        ("pe", 4096, 4096.0),
        ("pe", 8.0, 8.0),
        ("pe", MOST, MOST),
        ("phi", 1, 1.0),
    ],
)
def test_values_are_read_into_si(name, value, expected) -> None:
    assert PARAMETERS[name].read(value) == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "inter_bandwidth",
            "12.5 GB",
            "expected a value in B/s, got '12.5 GB'; write it like '12.5 GB/s'",
        ),
        ("pe", None, "expected a whole number, got None; write it like '1024'"),
        ("pe", True, "expected a whole number, got True; write it like '1024'"),
        ("pe", "4 B", "expected a whole number, got '4 B'; write it like '1024'"),
        ("pe", 0, "expected at least 1 and at most 1,099,511,627,776, got 0; pe is the number of"),
        ("pe", 1.5, "expected a whole number, got 1.5; write it like '1024'"),
        ("pe", 2 * MOST, "expected at least 1 and at most 1,099,511,627,776, got 2199023255552.0"),
        ("intra_latency", -1e-6, "expected at least 0 s, got -1e-06; intra_latency is start-up"),
        ("inter_bandwidth", 0, "expected more than 0 B/s, got 0; inter_bandwidth is bandwidth"),
        ("gamma", 1.1, "expected more than 0 and at most 1, got 1.1; gamma is "),
        ("phi", 0.5, "expected at least 1, got 0.5; phi is contention"),
    ],
)
def test_what_cannot_be_is_refused(name, value, message) -> None:
    with pytest.raises(InputError) as error:
        PARAMETERS[name].read(value)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("inter_bandwidth", 25, "25 B/s is not a plausible bandwidth; write its unit, such as"),
        ("inter_bandwidth", "25", "25 B/s is not a plausible bandwidth"),
        (
            "memory_bandwidth",
            1e20,
            "1e+20 B/s is not a plausible bandwidth; write its unit, such as '12.5 GB/s'",
        ),
        ("memory_capacity", 32, "32 B is not a plausible memory; write its unit, such as '32 GB'"),
        ("peak_flops", 15.7, "15.7 FLOP/s is not a plausible speed; write its unit, such as '15.7"),
        ("staging_latency", 40, "40 s is not a plausible latency; write its unit, such as '40 us'"),
    ],
)
def test_a_number_that_lacks_its_unit_is_noticed(name, value, message) -> None:
    with pytest.raises(InputError) as error:
        PARAMETERS[name].read(value)
    assert str(error.value).startswith(message)


WRITTEN = [
    (name, value)
    for name, parameter in PARAMETERS.items()
    for value in (1.0, 3.0, 25e9)
    if parameter.low <= value <= parameter.high
]


@pytest.mark.parametrize(("name", "value"), WRITTEN)
def test_what_is_written_is_read_again(name, value) -> None:
    parameter = PARAMETERS[name]
    assert parameter.read(parameter.write(value)) == value


def test_a_place_leads_the_message() -> None:
    with pytest.raises(InputError, match=r"^axes\.gamma: expected more than 0"):
        PARAMETERS["gamma"].read(0, "axes.gamma")


def test_defaults_are_within_their_bounds() -> None:
    for name, value in DEFAULTS.items():
        assert PARAMETERS[name].read(value) == value
