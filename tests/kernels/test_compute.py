"""Compute times on a PE of 100 FLOP/s (half of 200) and 1000 B/s, 4 bytes an item."""

from dataclasses import replace

import numpy as np
import pytest
from toys import LAYERS, PROCESSOR

from paradl.kernels.options import Options
from paradl.kernels.oracle.formulas import find_slowdown, time_layers
from paradl.kernels.paper.inputs import TablePE
from paradl.kernels.paper.layers import roofline
from paradl.kernels.work.compute import (
    count_fetched,
    wait_for_launches,
    without_launches,
)
from paradl.kernels.work.layers import Sequence

pytestmark = pytest.mark.usefixtures("in_numpy")

DELTA = 4.0
# x + y + w: 168, 480, 1418 items; 2304, 9216, 2560 FLOPs.
FORWARD = np.array([23.04, 92.16, 25.6])


def test_roofline_is_the_slower_of_arithmetic_and_traffic() -> None:
    bound = roofline(
        np.array([100.0, 100.0]), np.array([500.0, 2000.0]), TablePE(200.0, 0.5, 1000.0)
    )
    np.testing.assert_allclose(bound, [1, 2])


def test_a_slow_memory_binds_them_instead() -> None:
    slow = replace(PROCESSOR, memory_bandwidth=1.0)
    expected = [4 * 168, 4 * 480, 4 * 1418]
    np.testing.assert_allclose(time_layers(LAYERS, slow, DELTA, Options()).forward, expected)


def test_backward_is_two_forward_passes() -> None:
    times = time_layers(LAYERS, PROCESSOR, DELTA, Options())
    np.testing.assert_allclose(times.forward, FORWARD)
    np.testing.assert_allclose(times.backward, 2 * FORWARD)


@pytest.mark.parametrize(("optimizer", "accesses"), [("sgd", 5), ("adam", 7), ("none", 0)])
def test_an_update_is_bound_by_memory(optimizer, accesses) -> None:
    update = time_layers(LAYERS, PROCESSOR, DELTA, Options(optimizer=optimizer)).update
    expected = accesses * 4 * np.array([76, 296, 1290]) / 1000
    np.testing.assert_allclose(update, expected)


def test_a_measured_layer_takes_what_was_measured() -> None:
    seconds = np.array([30.0, 300.0, 3.0])
    measured = replace(
        LAYERS, slowdown=find_slowdown(LAYERS, PROCESSOR, DELTA, seconds, 1.0, 0.0, Options())
    )
    times = time_layers(measured, PROCESSOR, DELTA, Options())
    np.testing.assert_allclose(times.forward, seconds / 3)
    np.testing.assert_allclose(times.forward + times.backward, seconds)


def test_a_measured_layer_gains_from_a_faster_pe_as_the_roofline_does() -> None:
    measured = replace(LAYERS, slowdown=np.full(3, 1.5))
    faster = replace(PROCESSOR, peak_flops=400.0, memory_bandwidth=2000.0)
    np.testing.assert_allclose(
        time_layers(measured, faster, DELTA, Options()).forward, 1.5 * FORWARD / 2
    )


A_PASS = Options(oracle="machine")


def test_a_pass_reads_weights_once() -> None:
    """conv1 and conv2 are bound by arithmetic, fc by its 138 items: 4 B each at 10 B/s."""
    slow = replace(PROCESSOR, memory_bandwidth=10.0)
    times = time_layers(LAYERS, slow, DELTA, A_PASS)
    np.testing.assert_allclose(times.forward, [4 * 96 / 10, 92.16, 4 * 138 / 10])
    np.testing.assert_allclose(times.backward, 2 * np.asarray(times.forward))
    weights = np.array([76, 296, 1290])
    np.testing.assert_allclose(times.fixed, 3 * 4 * weights / 10)
    np.testing.assert_allclose(times.update, 20 * weights / 10)
    np.testing.assert_array_equal(times.launches, [1, 1, 1])


def test_kinds_reach_their_own_part_of_the_peak() -> None:
    """Half for convolutions, a quarter for products; fewer where few products are summed.

    A convolution sums its channels' windows of 3 x 3.
    """
    pe = replace(PROCESSOR, convolution_2d=0.5, matrix_product=0.25)
    np.testing.assert_allclose(
        time_layers(LAYERS, pe, DELTA, A_PASS).forward, [2 * 23.04, 2 * 92.16, 4 * 25.6]
    )
    few = replace(pe, half_channels=4.0)
    filled = np.array([18 / 22, 36 / 40, 128 / 132])
    np.testing.assert_allclose(
        time_layers(LAYERS, few, DELTA, A_PASS).forward, [46.08, 184.32, 102.4] / filled
    )


def test_the_last_tile_is_computed_whole() -> None:
    """4, 8 and 10 filters in tiles of 8, of volumes in tiles of 4."""
    tiled = replace(PROCESSOR, tile_filters=8.0)
    times = time_layers(LAYERS, tiled, DELTA, A_PASS).forward
    np.testing.assert_allclose(times, [23.04 * 2, 92.16, 25.6 * 1.6])
    deep = replace(LAYERS, volumetric=np.array([1.0, 1, 0]))
    times = time_layers(deep, tiled, DELTA, A_PASS).forward
    np.testing.assert_allclose(times, [23.04, 92.16, 25.6 * 1.6])


def test_kernels_hide_a_part_of_the_shorter_of_arithmetic_and_traffic() -> None:
    traffic = 4 * np.array([96, 192, 138]) / 1000
    for share in (0.0, 0.3, 1.0):
        pe = replace(PROCESSOR, kernel_overlap=share)
        times = time_layers(LAYERS, pe, DELTA, A_PASS).forward
        np.testing.assert_allclose(times, [23.04, 92.16, 25.6] + (1 - share) * traffic)


def test_volumes_do_not_unroll_their_windows() -> None:
    few = replace(PROCESSOR, half_channels=4.0)
    deep = replace(LAYERS, volumetric=np.array([1.0, 1, 0]))
    filled = np.array([2 / 6, 4 / 8, 128 / 132])
    np.testing.assert_allclose(
        time_layers(deep, few, DELTA, A_PASS).forward, np.array([23.04, 92.16, 25.6]) / filled
    )


def test_winograd_multiplies_less_in_dense_windows_of_3_x_3_and_stride_1() -> None:
    fewer = replace(PROCESSOR, winograd=1.6)
    plain = np.array([23.04, 92.16, 25.6])

    def take_shares(**changes) -> list[float]:
        times = time_layers(replace(LAYERS, **changes), fewer, DELTA, A_PASS)
        return (plain / np.asarray(times.forward)).tolist()

    two, wide = np.ones((3, 3)), np.array(LAYERS.kernel)
    two[2, 1] = 2  # conv2 steps by two columns
    wide[1, 0] = 5  # conv1's windows are 5 x 3
    assert take_shares() == pytest.approx([1.6, 1.6, 1])
    assert take_shares(stride=two) == pytest.approx([1.6, 1, 1])
    assert take_shares(kernel=wide) == pytest.approx([1, 1.6, 1])
    assert take_shares(volumetric=np.array([1.0, 0, 0])) == pytest.approx([1, 1.6, 1])
    assert take_shares(groups=np.array([1.0, 2, 1])) == pytest.approx([1.6, 1, 1])


def test_grouped_convolutions_fetch_their_windows() -> None:
    """conv1 in two groups of 2 filters: 2,304 FLOPs are 576 items at half of 1,000 B/s; conv2 in
    four: 2,304 items. Dense layers, and fc, are as they were.
    """
    pe = replace(PROCESSOR, window_fetch=0.5)
    grouped = replace(LAYERS, groups=np.array([2.0, 4, 1]))
    assert grouped.groups is not None
    fetched = count_fetched(grouped.flops, grouped.filters, grouped.groups)
    assert fetched.tolist() == [576, 2304, 0]
    np.testing.assert_allclose(
        time_layers(grouped, pe, DELTA, A_PASS).forward,
        [max(23.04, 576 * 4 / 500), max(92.16, 2304 * 4 / 500), 25.6],
    )
    slow = replace(pe, window_fetch=0.01)
    slower = [576 * 4 / 10, 2304 * 4 / 10, 25.6]
    np.testing.assert_allclose(time_layers(grouped, slow, DELTA, A_PASS).forward, slower)


def test_a_dense_network_is_what_it_was_bit_for_bit() -> None:
    slow = replace(PROCESSOR, half_channels=16.2, window_fetch=1e-3)
    known = time_layers(LAYERS, slow, DELTA, A_PASS)
    result = time_layers(replace(LAYERS, groups=np.ones(3)), slow, DELTA, A_PASS)
    assert np.array_equal(known.forward, result.forward)


def test_other_layers_move_their_items_as_often_as_is_said() -> None:
    moving = replace(LAYERS, convolution=np.zeros(3), elementwise=np.ones(3))
    pe = replace(PROCESSOR, elementwise_passes=6.0)
    times = time_layers(moving, pe, DELTA, A_PASS)
    both = np.asarray(times.forward) + np.asarray(times.backward)
    np.testing.assert_allclose(both, 6 * 4 * np.array([96, 192, 138]) / 1000)


def test_recomputing_runs_forward_once_more() -> None:
    once = time_layers(LAYERS, PROCESSOR, DELTA, A_PASS)
    twice = time_layers(LAYERS, PROCESSOR, DELTA, replace(A_PASS, recompute="full"))
    np.testing.assert_allclose(twice.forward, 2 * np.asarray(once.forward))
    np.testing.assert_allclose(twice.backward, once.backward)
    np.testing.assert_allclose(twice.fixed, 4 / 3 * np.asarray(once.fixed))
    np.testing.assert_allclose(twice.launches, 4 / 3 * np.asarray(once.launches))
    np.testing.assert_allclose(twice.update, once.update)


@pytest.mark.parametrize("launch", [0.0, 50.0, 1000.0])
def test_a_measured_network_takes_what_was_measured_with_its_batch(launch) -> None:
    """Eight samples took 4,000 s, (X^4 + (3 o)^4)^(1/4) of X s of the device."""
    seconds = np.array([100.0, 100, 300])
    slower = find_slowdown(LAYERS, PROCESSOR, DELTA, seconds, 8.0, launch, A_PASS)
    times = time_layers(replace(LAYERS, slowdown=slower), PROCESSOR, DELTA, A_PASS)
    a_sample = np.asarray(times.forward) + np.asarray(times.backward)
    device = float((8 * a_sample + np.asarray(times.fixed)).sum())
    assert (device**4 + (3 * launch) ** 4) ** 0.25 == pytest.approx(8 * 500)
    assert device + float(wait_for_launches(device, 3 * launch)) == pytest.approx(8 * 500)


@pytest.mark.parametrize(
    ("device", "launching", "wait"),
    [
        (7.0, 0.0, 0.0),
        (0.0, 7.0, 7.0),
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 2**0.25 - 1),
        (1.0, 2.0, 17**0.25 - 1),
        (1e3, 1e-3, 2.5e-22),  # x (1 + r^4)^(1/4) - x = x r^4 / 4 of small r: no digit is lost
    ],
)
def test_a_pe_waits_for_launches(device, launching, wait) -> None:
    assert float(wait_for_launches(device, launching)) == pytest.approx(wait, rel=1e-9, abs=1e-29)


@pytest.mark.parametrize(
    ("launching", "device"),
    [(0.0, 8.0), (4.0, 8 * 0.9375**0.25), (7.9, 4.0), (8.0, 4.0), (80.0, 4.0)],
)
def test_half_of_a_measured_pass_is_the_devices_at_least(launching, device) -> None:
    assert float(without_launches(8.0, launching)) == pytest.approx(device)


# The first layer is 5 products in a row; of the last one the gradient alone crosses the memory.
SEQUENCE = Sequence(steps=np.array([5.0, 1, 1]), reads=np.array([11 / 3, 1, 1 / 3]))


def test_steps_in_a_row_start_one_by_one_and_read_their_weights() -> None:
    times = time_layers(replace(LAYERS, sequence=SEQUENCE), PROCESSOR, DELTA, A_PASS)
    read = [11 / 3 * 72 + 4, 288 + 8, 1280 / 3 + 10]
    np.testing.assert_allclose(times.fixed, 3 * 4 * np.array(read) / 1000)
    np.testing.assert_array_equal(times.launches, [5, 1, 1])


def test_a_step_of_few_samples_leaves_tiles_empty() -> None:
    layers = replace(LAYERS, sequence=SEQUENCE)
    tiled = replace(PROCESSOR, tile_filters=25.0)
    full = time_layers(layers, PROCESSOR, DELTA, A_PASS)
    less = time_layers(layers, tiled, DELTA, A_PASS)
    # Forward and for the gradients of what came in, b samples take as long as b + 24/8.
    longer = np.asarray(less.fixed) - np.asarray(full.fixed)
    np.testing.assert_allclose(longer, [2 * 3 * np.asarray(less.forward)[0], 0, 0])


def test_steps_of_elementwise_layers_have_no_tiles() -> None:
    layers = replace(LAYERS, sequence=SEQUENCE, elementwise=np.array([1.0, 0, 0]))
    tiled = replace(PROCESSOR, tile_filters=25.0)
    full = time_layers(layers, PROCESSOR, DELTA, A_PASS).fixed
    np.testing.assert_array_equal(time_layers(layers, tiled, DELTA, A_PASS).fixed, full)


def test_a_sequence_of_nothing_is_none() -> None:
    ones = replace(LAYERS, sequence=Sequence(np.ones(3), np.ones(3)))
    for name in ("forward", "backward", "update", "fixed", "launches"):
        expected = getattr(time_layers(LAYERS, PROCESSOR, DELTA, A_PASS), name)
        np.testing.assert_allclose(
            getattr(time_layers(ones, PROCESSOR, DELTA, A_PASS), name), expected, 1e-15
        )


def test_by_table_iii_steps_take_no_time() -> None:
    layers = replace(LAYERS, sequence=SEQUENCE)
    expected = time_layers(LAYERS, PROCESSOR, DELTA, Options())
    np.testing.assert_array_equal(
        time_layers(layers, PROCESSOR, DELTA, Options()).forward, expected.forward
    )
