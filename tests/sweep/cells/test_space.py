"""What a question is about, whatever it was given as."""

import numpy as np
import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cells.source import open_space
from paradl.sweep.cells.space import thin_axis


def test_a_store_a_dataset_and_a_grid_are_one_space(mixed, mixed_url, mixed_grid):
    spaces = [open_space(source) for source in (mixed_url, mixed, mixed_grid)]
    for space in spaces:
        assert space.grid.labels == mixed_grid.labels
        assert {name: axes.tolist() for name, axes in space.axes.items()} == {
            name: axes.tolist() for name, axes in mixed_grid.axes.items()
        }
        # Two of four pairs of models and data sets fit.
        assert len(list(space.list_indices())) == 2 * 6
        assert len(list(space.list_cells())) == 5 * 2 * 2


def test_a_slice_is_a_part_of_its_space(mixed, mixed_url):
    part = mixed.sel(model="alexnet", pe=[4, 8], inter_bandwidth=1e9)
    selection = {"model": "alexnet", "pe": [4, 8], "inter_bandwidth": "1 GB/s"}
    for space in (open_space(part), open_space(mixed_url, selection)):
        assert {space.name(index)["model"] for index in space.list_indices()} == {"alexnet"}
        assert space.axes["pe"].tolist() == [4, 8]
        assert space.axes["inter_bandwidth"].tolist() == [1e9]


def test_the_largest_global_batch_is_part_of_a_space(mixed):
    assert open_space(mixed, None, 64).grid.spec.parameters["max_global_batch"] == 64


def test_no_space(mixed):
    with pytest.raises(InputError, match="paradl_spec"):
        open_space(mixed.drop_attrs())
    with pytest.raises(InputError, match="'pe'"):
        open_space(mixed.isel(pe=0, drop=True))
    with pytest.raises(InputError, match="model 'other'"):
        open_space(mixed.assign_coords(model=["other", "cosmoflow"]))


def test_few_cells_alone(mixed):
    with pytest.raises(InputError, match="20 cells"):
        open_space(mixed).expect_few(10)
    open_space(mixed).expect_few(10, "pe")
    assert len(paradl.sensitivity(mixed, {"model": "alexnet", "pe": 12, "strategy": "serial"})) == 0


@pytest.mark.parametrize(
    ("low", "high", "kept"),
    [
        (3, 7, [3, 5, 7]),  # one power of two says little of the axis
        (3, 9, [3, 6, 9]),  # so do two
        (3, 16, [4, 8, 16]),
        (1, 300, [1, 16, 256]),
        (4, 6, [4, 5, 6]),
    ],
)
def test_a_long_axis_keeps_powers_of_two_where_there_are_enough(low, high, kept) -> None:
    assert thin_axis(np.arange(low, high + 1.0), 3).tolist() == kept
