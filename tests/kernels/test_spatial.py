"""Spatial parallelism of the toy: halos by hand."""

from dataclasses import replace

import numpy as np
import pytest
from toys import LAYERS, TIMES, divide, placement

from paradl.kernels.oracle.table_iii import reduce_table
from paradl.kernels.paper import sums as table
from paradl.kernels.work import rows as machine
from paradl.kernels.work.division import Division, Placement
from paradl.kernels.work.layers import Layers
from paradl.kernels.work.rows import halo, layer_halo

pytestmark = pytest.mark.usefixtures("in_numpy")


def divide_rows(layers: Layers, places: Placement, p2: float) -> Division:
    return divide(places, p2, "spatial", layers)


def one_layer(*extents: float) -> np.ndarray:
    return np.array(extents)[:, None]


@pytest.mark.parametrize(
    ("kernel", "factors", "items"),
    [
        ((1, 3, 3), (1, 1, 2), 5 * 8 * 1),  # a column of the height
        ((1, 3, 3), (1, 2, 1), 5 * 6 * 1),  # a row of the width
        ((1, 3, 3), (1, 2, 2), 5 * (8 / 2 + 6 / 2)),  # half a column, half a row
        ((1, 5, 5), (1, 1, 2), 5 * 8 * 2),  # two columns
        ((3, 3, 3), (2, 1, 1), 5 * 8 * 6),  # a plane, of depth 1
        ((1, 1, 1), (1, 2, 2), 0),  # a 1x1 kernel looks at no neighbour
        ((3, 3, 3), (1, 1, 1), 0),  # nothing is split
        ((1, 2, 2), (1, 1, 2), 5 * 8 / 2),  # (K-1)/2 of an even kernel is the mean of its sides
    ],
)
def test_halo(kernel, factors, items) -> None:
    """5 channels of a sample of 1 x 8 x 6; a PE needs K - 1 rows of both neighbours together."""
    overlap, sample = one_layer(*kernel) - 1, one_layer(1, 8, 6)
    sent = halo(overlap, np.array([5.0]), sample, np.array(factors, float))
    assert sent.tolist() == [items]


@pytest.mark.parametrize(
    ("kernel", "stride", "forward", "backward"),
    [
        (3, 1, 1, 1),  # a row of either side, of x and of dL/dy
        (3, 2, 1 / 2, 1 / 4),  # windows have one row in common, of one side
        (7, 2, 5 / 2, 5 / 4),
        (2, 2, 0, 0),  # they touch, and have none
        (1, 2, 0, 0),  # they leave rows out
    ],
)
def test_windows_of_neighbours_have_few_rows_in_common(kernel, stride, forward, backward) -> None:
    """2 channels of x of 16 columns, 3 filters of dL/dy of as many as fit, in rows of 16."""
    rows = 16 / stride
    layers = replace(
        LAYERS,
        channels=np.full(3, 2.0),
        filters=np.full(3, 3.0),
        kernel=np.full((3, 3), float(kernel)),
        stride=np.full((3, 3), float(stride)),
        extents_x=np.repeat(one_layer(1, 16, 16), 3, axis=1),
        extents_y=np.repeat(one_layer(1, rows, rows), 3, axis=1),
    )
    sent = layer_halo(layers, np.array([1.0, 1, 2]), "common")
    assert sent.tolist() == [2 * 16 * forward + 3 * rows * backward] * 3


@pytest.mark.parametrize(
    ("kernel", "stride", "forward", "backward"),
    [(2, 2, 0, 0), (3, 2, 1 / 4, 1 / 2), (4, 2, 1 / 2, 1), (3, 1, 1, 1)],
)
def test_a_transposed_convolution_has_its_windows_on_the_output(
    kernel, stride, forward, backward
) -> None:
    """2 channels of x in rows of 8, 3 filters of dL/dy in rows of 8 strides."""
    layers = replace(
        LAYERS,
        channels=np.full(3, 2.0),
        filters=np.full(3, 3.0),
        kernel=np.full((3, 3), float(kernel)),
        stride=np.full((3, 3), 1 / stride),
        extents_x=np.repeat(one_layer(1, 8, 8), 3, axis=1),
        extents_y=np.repeat(one_layer(1, 8 * stride, 8 * stride), 3, axis=1),
    )
    sent = layer_halo(layers, np.array([1.0, 1, 2]), "common")
    assert sent.tolist() == [2 * 8 * forward + 3 * 8 * stride * backward] * 3


def test_the_input_goes_forward_and_the_output_gradient_back() -> None:
    # conv1: 2 channels and 4 filters, conv2: 4 and 8, columns of 4; the kernel of fc is 1
    assert layer_halo(LAYERS, np.array([1.0, 1, 2]), "windows").tolist() == [8 + 16, 16 + 32, 0]


def test_activations_are_divided_and_weights_replicated() -> None:
    sums = reduce_table(divide_rows(LAYERS, placement(factors=(1, 1, 2)), 2.0), TIMES)
    assert sums.forward_backward == (1 + 2 + 4 + 8) / 2 + (2 + 4)
    assert sums.update == 0.5 + 1 + 3
    assert sums.gradient == 72 + 288 + 1280
    assert sums.replicated == 1
    assert (sums.halo_items, sums.halo_exchanges, sums.split_items) == (72, 2, 128)


def test_a_layer_that_is_not_split_has_no_halo() -> None:
    sums = reduce_table(
        divide_rows(LAYERS, placement(split=(0, 1, 0), factors=(1, 1, 2)), 2.0), TIMES
    )
    assert (sums.halo_items, sums.halo_exchanges) == (48, 1)


def test_kernels_of_one_need_no_halo() -> None:
    pointwise = replace(LAYERS, kernel=np.ones((3, 3)))
    sums = reduce_table(divide_rows(pointwise, placement(factors=(1, 2, 2)), 4.0), TIMES)
    assert (sums.halo_items, sums.halo_exchanges) == (0, 0)


@pytest.mark.parametrize("sums", [table, machine], ids=["table", "machine"])
@pytest.mark.parametrize(
    ("split", "items"),
    [
        ((1, 1, 0), 128),
        ((1, 0, 0), 64),
        ((0, 1, 0), 128),
        ((1, 0, 1), 0),  # split to the end: nothing is gathered
        ((0, 0, 0), 0),
    ],
)
def test_split_point(sums, split, items) -> None:
    assert sums.split_point(LAYERS.y, np.array(split, float)) == items
