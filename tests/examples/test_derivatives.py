"""Errors with slopes and without: nested data sets, rows of figures, the picture."""

import numpy as np
import pytest
from few_samples import FEW

import sweep
from examples import derivatives
from examples.derivatives import SPLITS, draw_errors, keep_slices, measure_errors

pytest.importorskip("optax", reason="the example needs the extra 'surrogate'")
pytest.importorskip("matplotlib", reason="the example needs the extra 'plot'")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A data set, and a half of it."""
    folder = tmp_path_factory.mktemp("derivatives")
    sweep.sample(FEW, folder / "whole", 1200, seed=7)
    keep_slices(folder / "whole", folder / "half", 0.5)
    return folder


def test_a_part_is_whole_slices_as_they_are(whole):
    columns = ["slice", "strategy", "epoch_time", "split_random"]
    part, full = (sweep.open_samples(whole / name).read(columns) for name in ("half", "whole"))
    assert len(part) == len(full) / 2
    assert part["slice"].value_counts().eq(3).all()
    same = full[full["slice"].isin(part["slice"])]
    keys = ["slice", "strategy"]
    np.testing.assert_array_equal(part.sort_values(keys), same.sort_values(keys))


def test_each_split_is_tested_with_slopes_and_without(whole, monkeypatch):
    monkeypatch.setattr(derivatives, "SPLITS", ("random", "scale"))
    by_way = {
        gradients: list(
            measure_errors(whole / "half", whole / "whole", gradients, seed=0, epochs=1, drawn=600)
        )
        for gradients in (False, True)
    }
    for rows in by_way.values():
        assert [row["split"] for row in rows] == ["random", "scale"]
        assert all(0 < row["median_error"] < row["p95_error"] for row in rows)
    values, slopes = (
        [(row["train_rows"], row["test_rows"]) for row in rows] for rows in by_way.values()
    )
    assert values == slopes
    assert by_way[False][0]["median_error"] != by_way[True][0]["median_error"]


def test_a_panel_a_split_with_a_line_a_way(tmp_path):
    rows = [
        {"split": split, "gradients": gradients, "train_rows": count, "median_error": error}
        for split in SPLITS
        for gradients, less in ((False, 1), (True, 2))
        for count in (100, 1000)
        for error in (1 / count / less, 4 / count / less)  # of two seeds
    ]
    figure = draw_errors(rows)
    assert [axes.get_title("left").partition(":")[0] for axes in figure.axes] == list(SPLITS)
    for axes in figure.axes:
        lines = {line.get_label(): line.get_xydata() for line in axes.lines}
        np.testing.assert_allclose(lines["values alone"], [[100, 2], [1000, 0.2]])
        np.testing.assert_allclose(lines["values and slopes"], [[100, 1], [1000, 0.1]])
    figure.canvas.draw()
    (legend,) = figure.legends
    top = max(axes.get_tightbbox().y1 for axes in figure.axes)
    assert legend.get_window_extent().y0 >= top
