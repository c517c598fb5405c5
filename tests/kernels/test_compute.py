"""Compute times at the borders of their formulas, on a PE of 100 FLOP/s and 1000 B/s.

Every formula: tests/test_machine_agreement.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from toys import LAYERS, PROCESSOR

from paradl.kernels.options import Options
from paradl.kernels.oracle.formulas import find_slowdown, time_layers
from paradl.kernels.work.compute import (
    wait_for_launches,
    without_launches,
)
from paradl.kernels.work.layers import Sequence

pytestmark = pytest.mark.usefixtures("in_numpy")

DELTA = 4.0
A_PASS = Options(oracle="machine")


def test_a_dense_network_is_what_it_was_bit_for_bit() -> None:
    slow = replace(PROCESSOR, half_channels=16.2, window_fetch=1e-3)
    known = time_layers(LAYERS, slow, DELTA, A_PASS)
    result = time_layers(replace(LAYERS, groups=np.ones(3)), slow, DELTA, A_PASS)
    assert np.array_equal(known.forward, result.forward)


def test_winograd_multiplies_less_in_dense_windows_of_stride_1() -> None:
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


@pytest.mark.parametrize("gained", [1.0, 1.6, 2.25])
def test_larger_windows_save_more_products(gained: float) -> None:
    """F(2 x 2, k x k) saves 4 k^2 / (k+1)^2: none for k = 1, less than 4 of any k; up to 11."""

    def save(k: int) -> float:
        square = np.array([[1.0, 1, 1], [3, k, 1], [3, k, 1]])
        times = [
            time_layers(
                replace(LAYERS, kernel=square), replace(PROCESSOR, winograd=w), DELTA, A_PASS
            )
            for w in (1.0, gained)
        ]
        slow, fast = (np.asarray(one.forward) for one in times)
        return float(slow[1] / fast[1])

    assert save(3) == pytest.approx(gained)
    assert save(5) == pytest.approx(gained ** (np.log(100 / 36) / np.log(2.25)))
    assert (save(1), save(2), save(13)) == (1, 1, 1)
    assert 1 <= save(3) <= save(5) <= save(7) <= save(11) < 4
    if gained == 2.25:
        assert save(11) == pytest.approx(4 * 121 / 144)


def test_a_filter_of_a_group_sums_the_channels_of_its_group() -> None:
    """Half the efficiency where C/g k^2 products are summed, in whole groups and in dense ones."""
    known = np.asarray(time_layers(LAYERS, PROCESSOR, DELTA, A_PASS).forward)
    for groups in (1.0, 2.0, 4.0):
        summed = LAYERS.channels[1] / groups * 9
        slow = replace(PROCESSOR, half_channels=summed, memory_bandwidth=1e30)
        grouped = replace(LAYERS, groups=np.array([1, groups, 1]))
        times = time_layers(grouped, slow, DELTA, A_PASS)
        assert np.asarray(times.forward)[1] == pytest.approx(2 * known[1])


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


def test_a_sequence_of_nothing_is_none() -> None:
    ones = replace(LAYERS, sequence=Sequence(np.ones(3), np.ones(3)))
    for name in ("forward", "backward", "update", "fixed", "launches"):
        expected = getattr(time_layers(LAYERS, PROCESSOR, DELTA, A_PASS), name)
        np.testing.assert_allclose(
            getattr(time_layers(ones, PROCESSOR, DELTA, A_PASS), name), expected, 1e-15
        )
