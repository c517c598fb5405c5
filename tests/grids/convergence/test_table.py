"""Interpolated epochs: exact at the points, never falling, continuous at the ends."""

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.convergence.entry import Convergence, Point, interpolate_epochs
from paradl.kernels.configuration.convergence import count_epochs

STATED = Convergence(
    name="mine", model="toy", dataset="small", target="90 %", epochs_min=2.0, critical_batch=2000.0
)


def with_points(*epochs: float) -> Convergence:
    """Return the stated law with epochs at batches of 1024, 2048 ..."""
    points = tuple(Point(global_batch=1024 << n, epochs=epoch) for n, epoch in enumerate(epochs))
    return STATED.model_copy(update={"points": points})


def test_points_are_met_and_lines_lie_between():
    table = with_points(4, 7, 12, 23)
    batches = np.array([1024.0, 2048, 4096, 8192, 3072])
    np.testing.assert_allclose(interpolate_epochs(table, batches), [4, 7, 12, 23, 9.5])


def test_outside_the_law_goes_on_from_the_ends():
    table = with_points(4, 7)
    law = STATED.law
    below, above = interpolate_epochs(table, np.array([512.0, 8192.0]))
    assert below == pytest.approx(4 * count_epochs(law, 512) / count_epochs(law, 1024))
    assert above == pytest.approx(7 * count_epochs(law, 8192) / count_epochs(law, 2048))


def test_epochs_that_fall_become_their_mean():
    table = interpolate_epochs(with_points(38, 40, 38, 50), np.array([2048.0, 3000.0, 4096.0]))
    np.testing.assert_allclose(table, 39)


@given(st.lists(st.floats(1, 100), min_size=1, max_size=6))
@limit_examples(50)
def test_a_table_never_falls(epochs):
    everywhere = interpolate_epochs(with_points(*epochs), np.geomspace(1, 1e7, 200))
    assert np.all(np.diff(everywhere) >= -1e-9 * everywhere[1:])


def test_without_points_it_is_the_law():
    batches = np.array([64.0, 2000.0])
    np.testing.assert_array_equal(
        interpolate_epochs(STATED, batches), count_epochs(STATED.law, batches)
    )
