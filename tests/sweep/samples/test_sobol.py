import numpy as np
import pytest
from scipy.stats import qmc

from grids.entries.parameters import PARAMETERS
from sweep.samples.sobol import MOST_DIMENSIONS, draw_sobol


@pytest.mark.parametrize(
    ("dimensions", "first", "count"),
    [(1, 0, 1), (3, 0, 32), (5, 17, 9), (7, 4096, 2048), (MOST_DIMENSIONS, 10**9, 33)],
)
def test_points_are_scipys(dimensions, first, count):
    sequence = qmc.Sobol(dimensions, rng=np.random.default_rng(3))
    if first:
        sequence.fast_forward(first)
    expected = sequence.random(1 << (count - 1).bit_length())[:count].T
    points = draw_sobol(np.random.default_rng(3), dimensions, first, count)
    np.testing.assert_array_equal(points, expected)


def test_every_axis_has_a_dimension():
    assert len(PARAMETERS) < MOST_DIMENSIONS  # one is the machines'
