"""Compute times on a PE of 100 FLOP/s (half of 200) and 1000 B/s, 4 bytes an item."""

from dataclasses import replace

import numpy as np
import pytest
from toys import LAYERS, PROCESSOR

from kernels.compute import forward_roofline, layer_times, roofline, slowdown
from kernels.options import Options

DELTA = 4.0
# x + y + w: 168, 480, 1418 items; 2304, 9216, 2560 FLOPs.
FORWARD = np.array([23.04, 92.16, 25.6])


def test_roofline_is_the_slower_of_arithmetic_and_traffic() -> None:
    bound = roofline(np.array([100.0, 100.0]), np.array([500.0, 2000.0]), PROCESSOR)
    np.testing.assert_allclose(bound, [1, 2])


def test_layers_are_bound_by_arithmetic() -> None:
    np.testing.assert_allclose(forward_roofline(LAYERS, PROCESSOR, DELTA), FORWARD)


def test_a_slow_memory_binds_them_instead() -> None:
    slow = replace(PROCESSOR, memory_bandwidth=1.0)
    expected = [4 * 168, 4 * 480, 4 * 1418]
    np.testing.assert_allclose(forward_roofline(LAYERS, slow, DELTA), expected)


def test_backward_is_two_forward_passes() -> None:
    times = layer_times(LAYERS, PROCESSOR, DELTA)
    np.testing.assert_allclose(times.forward, FORWARD)
    np.testing.assert_allclose(times.backward, 2 * FORWARD)


@pytest.mark.parametrize(("optimizer", "accesses"), [("sgd", 5), ("adam", 7), ("none", 0)])
def test_an_update_is_bound_by_memory(optimizer, accesses) -> None:
    update = layer_times(LAYERS, PROCESSOR, DELTA, Options(optimizer=optimizer)).update
    expected = accesses * 4 * np.array([76, 296, 1290]) / 1000
    np.testing.assert_allclose(update, expected)


def test_a_measured_layer_takes_what_was_measured() -> None:
    seconds = np.array([30.0, 300.0, 3.0])
    measured = replace(LAYERS, slowdown=slowdown(LAYERS, PROCESSOR, DELTA, seconds))
    times = layer_times(measured, PROCESSOR, DELTA)
    np.testing.assert_allclose(times.forward, seconds / 3)
    np.testing.assert_allclose(times.forward + times.backward, seconds)


def test_a_measured_layer_gains_from_a_faster_pe_as_the_roofline_does() -> None:
    measured = replace(LAYERS, slowdown=np.full(3, 1.5))
    faster = replace(PROCESSOR, peak_flops=400.0, memory_bandwidth=2000.0)
    np.testing.assert_allclose(layer_times(measured, faster, DELTA).forward, 1.5 * FORWARD / 2)
