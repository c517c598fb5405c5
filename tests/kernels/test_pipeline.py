"""Pipeline stages of the toy: convolutions, then the fully connected layer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from toys import LAYERS, TIMES, divide, placement

from paradl.kernels.options import Options
from paradl.kernels.oracle.reduction import reduce_part
from paradl.kernels.oracle.table_iii import reduce_table
from paradl.kernels.paper import sums as table
from paradl.kernels.work import stages
from paradl.kernels.work.division import Division

pytestmark = pytest.mark.usefixtures("in_numpy")


# Table III has its own sums, which stay as they are.
of_both = pytest.mark.parametrize("sums", [table, stages], ids=["table", "machine"])


@of_both
def test_stages_are_sums_of_consecutive_layers(sums) -> None:
    values = np.array([1.0, 2, 4, 8, 16])
    assert sums.stage_sums(values, np.array([2, 3, 5])).tolist() == [3, 4, 24]


@of_both
def test_a_stage_that_a_cell_does_not_have_is_empty(sums) -> None:
    assert sums.stage_sums(np.array([1.0, 2, 4]), np.array([1, 3, 3, 3])).tolist() == [1, 6, 0, 0]


@of_both
def test_stages_and_values_vary_along_the_cells(sums) -> None:
    values = np.array([[1.0, 10], [2, 20], [4, 40]])
    ends = np.array([[1, 2], [3, 3]])
    assert sums.stage_sums(values, ends).tolist() == [[1, 30], [6, 40]]
    assert sums.stage_sums(values[:, :1], ends).tolist() == [[1, 3], [6, 4]]
    assert sums.stage_sums(values, ends[:, 1:]).tolist() == [[3, 30], [4, 40]]


@of_both
def test_the_largest_stage(sums) -> None:
    assert sums.largest(np.array([1.0, 9, 4, 3]), np.array([1, 2, 4])) == 9


@of_both
@pytest.mark.parametrize(
    ("ends", "p2", "items"),
    [
        ((3, 3, 3), 1, 0),  # one stage sends nothing
        ((1, 3, 3), 2, 64),
        ((2, 3, 3), 2, 128),
        ((1, 2, 3), 3, 128),  # the larger of 64 and 128; the last stage's 10 go nowhere
    ],
)
def test_what_is_passed_on(sums, ends, p2, items) -> None:
    assert sums.passed_on(LAYERS.y, np.array(ends), float(p2)) == items


def division(**options: Any) -> Division:
    """The toy in two stages, the convolutions and the fully connected layer."""
    crossing = np.array([64.0, 128 + 64, 0])  # as if the last layer read both of the others
    layers = replace(LAYERS, crossing=crossing)
    return divide(placement(ends=(2, 3)), 2.0, "pipeline", layers, options=Options(**options))


def test_a_cut_inside_a_block_carries_the_shortcut_too() -> None:
    """Table III has the output of the layer before it alone."""
    assert reduce_part(division(oracle="machine"), TIMES).sent["pipeline"].stage_items == 128 + 64
    assert reduce_table(division(), TIMES).stage_items == 128


def test_the_largest_stage_counts_for_each_quantity_by_itself() -> None:
    sums = reduce_table(division(), TIMES)
    assert sums.forward_backward == (1 + 4) + (2 + 8)
    assert sums.update == 3  # of the fully connected layer
    assert sums.gradient == 1280
    assert sums.stage_items == 128
    assert sums.pipelined == 1
