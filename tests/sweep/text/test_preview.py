import re
from dataclasses import replace

import numpy as np

from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.engine.progress import silent
from paradl.sweep.text.preview import announce, outline_plan


def test_the_outline_counts(mixed_grid):
    text = outline_plan(mixed_grid, plan_cube(mixed_grid), 2)
    assert "2 models x 2 data sets x 1 system x 6 strategies x 5 PE counts x 2 batches" in text
    assert "x 2 inter_bandwidth" in text
    assert "480 (2 of 4 model-dataset pairs are incompatible and skipped)" in text
    assert "blocks  4 of 1 x 1 x 1 x 6 x 5 x 2 x 2 cells" in text
    assert "2 workers" in text


def test_progress_is_announce_once(mixed_grid, capsys):
    plan = plan_cube(mixed_grid)
    with announce(mixed_grid, 1, silent)(plan, np.arange(3)):
        pass
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "3 of 4 blocks" in shown.err


def test_a_single_cell_is_one(tmp_path, cli):
    spec, store = tmp_path / "spec.yaml", tmp_path / "out.zarr"
    axes = "model: [alexnet], dataset: [imagenet], system: [abci], strategy: data, pe: 8, batch: 8"
    spec.write_text(f"axes: {{{axes}}}\n")
    said = [
        cli("sweep", spec, store, "--dry-run"),
        cli("sweep", spec, store),
        cli("export", store, tmp_path / "cells.csv"),
    ]
    assert {code for code, _, _ in said} == {0}
    text = "\n".join(out + err for _, out, err in said)
    assert "1 cell" in text
    # A shape is of several numbers: `1 x 1 cells`.
    assert re.findall(r"(?<!x )(?<![\d.,])1 \w+s\b", text) == []


def test_the_outline_estimates_time(mixed_grid):
    drawn = replace(
        mixed_grid,
        spec=mixed_grid.spec.model_copy(update={"outputs": ["comp_time", "epoch_time_p90"]}),
    )
    plain, percentiles = (outline_plan(grid, plan_cube(grid), 0) for grid in (mixed_grid, drawn))
    assert "time " in plain
    assert "draws" not in plain
    assert "draws" in percentiles
