"""A PE's own part of the toy's layers, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from toys import LAYERS, divide, placement

from paradl.kernels.options import Options
from paradl.kernels.parallelism.layout import find_layout
from paradl.kernels.work.layers import Layers
from paradl.kernels.work.rows import row_share

pytestmark = pytest.mark.usefixtures("in_numpy")


def own(group, p2=2.0, **places) -> Layers:
    options = Options(oracle="machine")
    division = divide(placement(**places), p2, group, options=options)
    return find_layout(division.parallelisms).take_part(division)


def test_by_filter_a_pe_reads_all_and_makes_its_part() -> None:
    part = own("filter")
    assert np.asarray(part.x).tolist() == [32, 64, 128]
    assert np.asarray(part.y).tolist() == [32, 64, 10]
    assert np.asarray(part.flops).tolist() == [1152, 4608, 2560]
    assert np.asarray(part.w).tolist() == [36, 144, 1280]


def test_by_filter_it_reads_the_channels_of_its_groups() -> None:
    """Of 4 groups two PEs have two each; 8 PEs have half a group, and read all of its channels."""
    options = Options(oracle="machine")
    layers = replace(LAYERS, groups=np.array([4.0, 1, 1]))

    def read(p2: float) -> list[float]:
        division = divide(placement(), p2, "filter", layers, options=options)
        return np.asarray(find_layout(division.parallelisms).take_part(division).x).tolist()

    assert read(2.0) == [16, 64, 128]
    assert read(8.0) == [8, 64, 128]


def test_by_channel_it_reads_its_part() -> None:
    part = own("channel")
    assert np.asarray(part.x).tolist() == [16, 32, 128]
    assert np.asarray(part.y).tolist() == [64, 128, 10]


def test_of_rows_the_fullest_pe_counts() -> None:
    """Three PEs along a height of 4: one has 2 rows; a fully connected layer is whole."""
    part = own("spatial", p2=3.0, factors=(1, 3, 1))
    assert np.asarray(part.x).tolist() == [16, 32, 128]
    assert np.asarray(part.flops).tolist() == [1152, 4608, 2560]
    assert np.asarray(part.w).tolist() == [72, 288, 1280]  # all weights


@pytest.mark.parametrize(
    ("extent", "factor", "share"), [(4, 2, 1 / 2), (5, 4, 2 / 5), (2, 8, 1 / 2), (1, 4, 1)]
)
def test_a_dimension_is_divided_as_far_as_it_has_rows(extent, factor, share) -> None:
    extents, factors = np.array([[1.0], [extent], [1]]), np.array([1.0, factor, 1])
    assert float(row_share(extents, factors)[0]) == share


@pytest.mark.parametrize("group", ["none", "spatial", "filter", "channel", "pipeline"])
def test_of_one_pe_it_is_the_whole(group) -> None:
    part = own(group, p2=1.0)
    for name in ("x", "y", "w", "flops"):
        assert np.array_equal(getattr(part, name), getattr(LAYERS, name))
