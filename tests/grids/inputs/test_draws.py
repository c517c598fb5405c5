"""Draws by name: the same wherever, whenever and with whatever else a name is drawn.

In other processes: tests/test_pins.py, whose intervals follow from draws.
"""

import numpy as np
import pytest

from paradl.grids.entries.calibration import DRAWN_OF_BLOCKS
from paradl.grids.inputs.draws import DRAWS, draw_normals
from paradl.grids.inputs.uncertainty import NAMES, SERIAL

DRAWN = (*dict.fromkeys((*NAMES, SERIAL, *DRAWN_OF_BLOCKS)),)


@pytest.mark.parametrize("count", [DRAWS, 256])
def test_draws_have_mean_0_and_variance_1(count: int) -> None:
    normals = draw_normals(DRAWN, count)
    assert normals.shape == (count, len(DRAWN))
    np.testing.assert_allclose(normals.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(normals.var(axis=0), 1, atol=1e-12)


def test_a_draw_depends_on_its_name_alone() -> None:
    whole = draw_normals(DRAWN)
    np.testing.assert_array_equal(draw_normals(DRAWN[::-1]), whole[:, ::-1])
    more = draw_normals((*DRAWN, "any other"))
    np.testing.assert_array_equal(more[:, :-1], whole)
    for name, column in zip(DRAWN, whole.T, strict=True):
        np.testing.assert_array_equal(draw_normals((name,))[:, 0], column)


def test_streams_of_any_number_are_independent() -> None:
    """Correlations of independent streams of 32 draws have the spread 1 / sqrt(31)."""
    names = [f"parameter {number}" for number in range(200)]
    normals = draw_normals(names)
    correlations = (normals.T @ normals / DRAWS)[np.triu_indices(len(names), 1)]
    assert correlations.mean() == pytest.approx(0, abs=0.005)
    assert correlations.std() == pytest.approx(31**-0.5, rel=0.05)


def test_parameters_are_hardly_correlated() -> None:
    normals = draw_normals(DRAWN)
    correlations = (normals.T @ normals / DRAWS)[np.triu_indices(len(DRAWN), 1)]
    assert np.abs(correlations).max() < 0.4
    assert correlations.std() < 0.17
