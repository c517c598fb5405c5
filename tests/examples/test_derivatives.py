"""Errors with slopes and without: data sets that lie in each other, and the picture."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from examples.derivatives import SPLITS, draw_errors, keep_slices

pytest.importorskip("matplotlib", reason="the example needs the extra 'plot'")


def test_parts_are_whole_slices_and_lie_in_each_other(tmp_path):
    rows = [
        {"slice": number, "strategy": strategy, "epoch_time": number / 7 + len(strategy)}
        for number in range(40)
        for strategy in ("data", "serial", "filter")
    ]
    whole = tmp_path / "whole"
    for number in range(2):  # a folder for each side
        folder = whole / "data" / f"side={number}"
        folder.mkdir(parents=True)
        parquet.write_table(pa.Table.from_pylist(rows[number::2]), folder / "rows.parquet")
    (whole / "dataset.json").write_text(json.dumps({"rows": len(rows), "seed": 3}))
    parts = {}
    for share in (0.5, 0.25):
        part = tmp_path / f"part-{share}"
        keep_slices(whole, part, share)
        file = part / "data" / "part" / "rows.parquet"
        parts[share] = parquet.read_table(file).to_pylist()
        assert json.loads((part / "dataset.json").read_text()) == {
            "rows": len(parts[share]),
            "seed": 3,
        }
    assert [len(part) for part in parts.values()] == [60, 30]
    for part, outer in ((parts[0.5], rows), (parts[0.25], parts[0.5])):
        kept = {row["slice"] for row in part}
        same = [row for row in outer if row["slice"] in kept]
        assert sorted(part, key=repr) == sorted(same, key=repr)


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
        lines = {str(line.get_label()): np.asarray(line.get_xydata()) for line in axes.lines}
        np.testing.assert_allclose(lines["values alone"], np.array([[100, 2], [1000, 0.2]]))
        np.testing.assert_allclose(lines["values and slopes"], np.array([[100, 1], [1000, 0.1]]))
    figure.canvas.draw()
    (legend,) = figure.legends
    top = max(axes.get_tightbbox().y1 for axes in figure.axes)
    assert legend.get_window_extent().y0 >= top
