"""Placed groups of the toy: its convolutions on one PE, the fully connected layer on another."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from toys import TIMES, divide, placement

from paradl.kernels.options import Options
from paradl.kernels.oracle.reduction import hold, reduce_part
from paradl.kernels.parallelism.placement import find_peaks, sum_devices
from paradl.kernels.work.division import Division, Placed

pytestmark = pytest.mark.usefixtures("in_numpy")

RUNS = np.array([[1.0, 1, 0], [0, 0, 1]])
PLACED = Placed(
    runs=RUNS,
    # As if conv1 were beside the longest way forward, and all in a row on the way back.
    forward=np.array([0.0, 1, 1]),
    backward=np.ones(3),
    messages=2.0,
    items=256.0,
    received=np.array([0.0, 128]),
)


def division(**options: Any) -> Division:
    """The toy on two PEs, four bytes an item, ten a weight."""
    placed = replace(placement(), placed=PLACED)
    return divide(
        placed,
        2.0,
        "placement",
        options=Options("machine", **options),
        state_bytes=10.0,
    )


def test_time_is_that_of_the_critical_path() -> None:
    assert reduce_part(division(), TIMES).forward_backward == (4 + 2) + (2 + 8 + 4)


def test_a_third_of_what_a_pass_takes_is_forward() -> None:
    times = replace(TIMES, fixed=np.array([3.0, 6, 9]))
    assert reduce_part(division(), times).fixed == (2 + 4 + 6) + (2 + 3)


def test_the_pe_that_has_most_counts_for_each_quantity_by_itself() -> None:
    of_group = reduce_part(division(), TIMES)
    assert of_group.update == 3  # of the fully connected layer
    assert of_group.gradient == 1280
    assert of_group.tensors == 2  # of the convolutions


def test_what_passes_on_the_path_is_kept() -> None:
    of_group = reduce_part(division(), TIMES)
    path = of_group.sent["placement"]
    assert (path.path_messages, path.path_items) == (2, 256)


def test_a_pe_holds_what_it_runs() -> None:
    values = np.array([1.0, 2, 4])
    assert sum_devices(values, RUNS).tolist() == [3, 4]


def test_peaks_are_of_each_pe_by_itself() -> None:
    kept, gradients = np.array([5.0, 7, 100]), np.array([10.0, 1, 3])
    # conv1: 5 + 10; conv2: 5 + 7 + 1. fc keeps its own alone.
    assert find_peaks(kept, gradients, RUNS).tolist() == [15, 103]


def test_what_comes_from_other_pes_is_held_too() -> None:
    holding = hold(division())
    alone = 4 * (128 + 10)  # the gradients of what fc takes and makes; it keeps nothing
    assert np.ravel(holding.peak).tolist() == [4 * (96 + 128 + 64 + 128), 4 * 128 + alone]
    assert np.ravel(holding.states).tolist() == [10 * (72 + 288 + 12), 10 * 1290]
