"""Ranges: values between two ends, which grids refuse."""

import numpy as np
import pytest

from paradl.grids.axes import Range
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import Spec, validate_spec

AXES = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "pe": 8, "batch": 8}
PARTS = np.linspace(0, 1, 10_001)


def test_values_lie_between_the_ends_evenly() -> None:
    values = Range("uniform", 2.0, 6.0).read_quantiles(PARTS)
    np.testing.assert_allclose(values, 2 + 4 * PARTS)
    logarithms = np.log10(Range("loguniform", 1e9, 1e11).read_quantiles(PARTS))
    np.testing.assert_allclose(logarithms, 9 + 2 * PARTS)


def test_counts_are_as_likely_at_the_ends_as_between_them() -> None:
    counts = Range("uniform", 1.0, 4.0, whole=True).read_quantiles(PARTS)
    values, often = np.unique(counts, return_counts=True)
    assert list(values) == [1, 2, 3, 4]
    assert np.ptp(often) <= 2


def test_a_spec_reads_ranges_with_units() -> None:
    spec = Spec.model_validate({"axes": AXES | {"inter_latency": {"uniform": ["1 us", "9 us"]}}})
    assert spec.axes.ranges == {"inter_latency": Range("uniform", 1e-6, 9e-6)}
    assert "inter_latency" not in spec.axes.numeric


def test_no_grid_is_made_of_a_range() -> None:
    spec = validate_spec({"axes": AXES | {"inter_bandwidth": {"loguniform": [1e9, 1e10]}}}, "spec")
    with pytest.raises(InputError) as error:
        Grid.from_spec(spec)
    assert str(error.value).startswith("axes.inter_bandwidth: ")
    assert "paradl sample" in str(error.value)


def test_a_range_is_an_axis_as_others_are() -> None:
    both = {"axes": AXES | {"rail": {"uniform": [0.5, 1]}}, "parameters": {"rail": 0.7}}
    with pytest.raises(InputError, match="'rail' is an axis too; keep one of the two"):
        validate_spec(both, "spec")
    with pytest.raises(InputError, match="'gamma' is no parameter of 'oracle: machine'"):
        validate_spec({"axes": AXES | {"gamma": {"uniform": [0.5, 1]}}}, "spec")


def test_the_schema_tells_ranges() -> None:
    axes = Spec.model_json_schema()["$defs"]["Axes"]["properties"]
    offered = axes["inter_bandwidth"]["anyOf"]
    assert "loguniform" in str(offered)
