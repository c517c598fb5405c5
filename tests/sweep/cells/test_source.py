"""The summary that a sweep keeps is that of its cells, however its blocks are cut."""

import re

import numpy as np
import pytest
import zarr
from cubes import SMALL

import paradl
from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.statistics import EFFICIENCY
from paradl.sweep.cells.parts import Lines
from paradl.sweep.cells.selection import select
from paradl.sweep.cells.source import open_source
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import make_plan
from paradl.sweep.cube.store import open_cube
from paradl.sweep.engine.block import run_block
from paradl.sweep.engine.run import read_grid


def same(one: Lines, other: Lines) -> None:
    assert one.list_columns().keys() == other.list_columns().keys()
    for name, values in one.list_columns().items():
        if name in LABELS:
            assert values.tolist() == other.list_columns()[name].tolist()
        else:
            np.testing.assert_allclose(values, other.list_columns()[name], rtol=1e-6, err_msg=name)


def test_kept_is_computed(mixed, mixed_url):
    result = open_source(mixed).summarise({}, EFFICIENCY, "train_time")
    assert len(result.list_columns()["forbidden_by"]) == 2 * 6 * 2 * 2
    same(result, open_source(mixed_url).summarise({}))


@pytest.mark.parametrize(
    "selection",
    [
        {"model": "cosmoflow"},
        {"strategy": ["data+filter", "data"], "batch": 64, "inter_bandwidth": "1 GB/s"},
    ],
)
def test_only_the_slice_is_read_of_what_is_kept(mixed, mixed_url, selection):
    same(
        open_source(select(mixed, selection)).summarise({}, EFFICIENCY, "train_time"),
        open_source(mixed_url).summarise(selection),
    )


def test_lines_that_lie_in_several_blocks(tmp_path, small, small_url):
    grid = read_grid(small)
    plan = make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=2)
    assert plan.grid[grid.dims.index("pe")] > 1
    parts = create_cube(str(tmp_path / "parts.zarr"), grid, plan)
    for block in range(plan.blocks):
        run_block(parts.location, parts.identity, block)
    same(*(open_source(value).summarise({}) for value in (parts, small_url)))


@pytest.mark.parametrize(
    ("question", "selection"), [(paradl.limits, {}), (paradl.best, {"pe": [1, 4]})]
)
def test_an_open_cube_answers_as_its_place_does(mixed_url, question, selection):
    answer, expected = (
        question(source, selection=selection).to_dict("records")
        for source in (open_cube(mixed_url), mixed_url)
    )
    assert answer == expected


def test_a_place_and_a_cube_answer_alike(mixed, mixed_url):
    for question in (paradl.limits, paradl.best):
        stored, query = question(mixed_url), question(mixed)
        assert stored.columns.tolist() == query.columns.tolist()
        labels = ["model", "dataset", "system", "strategy"]
        assert stored[labels].values.tolist() == query[labels].values.tolist()


def test_a_store_a_dataset_and_a_design_space_have_the_same_cells(mixed, mixed_url, mixed_grid):
    selection = {"model": "alexnet", "pe": [4, 8]}
    for other in (mixed, mixed_grid):
        difference = paradl.diff(mixed_url, other, selection)
        assert difference["same"], difference
        assert difference["compared"] == 2 * 6 * 2 * 2 * 2
        assert paradl.regret(mixed_url, selection).equals(paradl.regret(other, selection))


@pytest.fixture(scope="module")
def reduced_url(tmp_path_factory):
    """A store with the summaries of SMALL alone."""
    url = str(tmp_path_factory.mktemp("reduced") / "cube.zarr")
    paradl.run(SMALL, url, reduce_only=True)
    return url


def test_reduce_only_keeps_no_cells_and_answers_the_same(reduced_url, small_url):
    assert "comp_time" not in zarr.open_group(reduced_url, mode="r")
    assert "comp_time" in zarr.open_group(small_url, mode="r")
    for question in (paradl.limits, paradl.best):
        answer, expected = (question(url).to_dict("records") for url in (reduced_url, small_url))
        assert answer == expected


def test_what_needs_cells_says_so(reduced_url, mixed):
    message = "no variable 'comp_time'"
    with pytest.raises(InputError, match=message):
        paradl.best(reduced_url, {"pe": 4})
    with pytest.raises(InputError, match=message):
        paradl.limits(reduced_url, 0.9)
    with pytest.raises(InputError, match="no variable 'memory'"):
        paradl.limits(mixed.drop_vars("memory"))


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"flag": 1}, "'flag'"),
        ({"pee": 4}, "'pee'"),
        ({"pe": 5}, "pe 5"),
    ],
)
def test_a_selection_speaks_of_the_cube_s_axes(mixed_url, selection, message):
    for question in (paradl.limits, paradl.best):
        with pytest.raises(InputError, match=re.escape(message)):
            question(mixed_url, selection=selection)
