"""Rows of logs are points, and their fit is a line of the same colour."""

from typing import Any

import numpy as np
import pytest

from paradl.sweep.plots.collectives import draw_collectives

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_collectives

SIZES = np.geomspace(1e3, 1e9, 7)


def make_rows(count: int) -> list[dict[str, Any]]:
    seconds = 1e-5 + SIZES / 1e10
    row = {"collective": "all_reduce", "sizes": [*SIZES[::-1]], "predicted": [*seconds[::-1]]}
    return [{**row, "pes": 2**n, "measured": [*2 * seconds[::-1]]} for n in range(count)]


@pytest.mark.parametrize(("count", "size"), [(1, "paper"), (20, "slide")])
def test_texts_are_legible(count, size, expect_legible):
    figure = draw(make_rows(count), size)
    assert {"1 MB", "1 GB/s"} <= {*expect_legible(figure)}
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == [f"all_reduce,\n{2**n} PEs" for n in range(count)]


def test_points_are_measured_and_lines_are_fitted():
    points, line = draw(make_rows(1)).axes[0].get_lines()
    fitted = SIZES / (1e-5 + SIZES / 1e10)
    np.testing.assert_allclose(points.get_ydata(), fitted / 2)
    np.testing.assert_allclose(line.get_ydata(), fitted)
    assert points.get_color() == line.get_color()
    assert (points.get_linestyle(), line.get_marker()) == ("None", "None")
