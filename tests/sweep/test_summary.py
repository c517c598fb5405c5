"""The summary that a sweep keeps is that of its cells, however its blocks are cut."""

import re

import numpy as np
import pytest
import xarray as xr
import zarr

import sweep
from grids.errors import InputError
from sweep.block import compute
from sweep.creation import create
from sweep.engine import read_grid
from sweep.plan import make_plan
from sweep.questions.summary import computed, kept
from sweep.variables import EFFICIENCY, SUMMARY


def same(one: xr.Dataset, other: xr.Dataset) -> None:
    for name in SUMMARY:
        np.testing.assert_allclose(
            one[name].transpose(*other[name].dims), other[name], rtol=1e-6, err_msg=name
        )


def test_kept_is_computed(mixed, mixed_url):
    found = computed(mixed, EFFICIENCY)
    exists = found["forbidden_by"] != 8
    assert exists.any()
    same(found.where(exists), kept(mixed_url).where(exists))


def test_lines_that_lie_in_several_blocks(tmp_path, small):
    grid = read_grid(small)
    plan = make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=2, chunk_cells=2)
    assert plan.grid[grid.dims.index("pe")] > 1
    cube = create(str(tmp_path / "parts.zarr"), grid, plan)
    for block in range(plan.blocks):
        compute(cube, block)
    whole = sweep.run(small, tmp_path / "whole.zarr")
    exists = whole["limit"].isel(pe=0) != 8
    same(kept(tmp_path / "parts.zarr").where(exists), kept(tmp_path / "whole.zarr").where(exists))


def test_a_place_and_a_cube_answer_alike(mixed, mixed_url):
    for question in (sweep.limits, sweep.best):
        stored, asked = question(mixed_url), question(mixed)
        assert stored.columns.tolist() == asked.columns.tolist()
        labels = ["model", "dataset", "system", "strategy"]
        assert stored[labels].values.tolist() == asked[labels].values.tolist()


def test_reduce_only_keeps_no_cells_and_answers_the_same(tmp_path, small):
    whole = sweep.run(small, tmp_path / "whole.zarr")
    sweep.run(small, tmp_path / "reduced.zarr", reduce_only=True)
    assert "comp_time" not in zarr.open_group(str(tmp_path / "reduced.zarr"), mode="r")
    assert "comp_time" in whole
    for question in (sweep.limits, sweep.best):
        expected = question(tmp_path / "whole.zarr")
        assert question(tmp_path / "reduced.zarr").to_dict("records") == expected.to_dict("records")


def test_what_needs_cells_says_so(tmp_path, small, mixed):
    sweep.run(small, tmp_path / "cube.zarr", reduce_only=True)
    message = "no variable 'comp_time', and this question needs its cells; sweep with outputs"
    with pytest.raises(InputError, match=message):
        sweep.best(tmp_path / "cube.zarr", {"pe": 4})
    with pytest.raises(InputError, match=message):
        sweep.limits(tmp_path / "cube.zarr", 0.9)
    with pytest.raises(InputError, match="no variable 'memory'"):
        sweep.limits(mixed.drop_vars("memory"))


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"flag": 1}, "no axis 'flag' in this cube; known: batch, dataset"),
        ({"pee": 4}, "no axis 'pee' in this cube; did you mean 'pe'"),
        ({"pe": 5}, "no pe 5 in this cube"),
    ],
)
def test_a_selection_speaks_of_the_cube_s_axes(mixed_url, selection, message):
    for question in (sweep.limits, sweep.best):
        with pytest.raises(InputError, match=re.escape(message)):
            question(mixed_url, selection=selection)
