import pytest

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import read_grid
from paradl.sweep.cube.variables import describe_coordinate

AXES = {
    "model": "alexnet",
    "dataset": "imagenet",
    "system": "abci",
    "pe": 1,
    "batch": 1,
    "layout": [{"group": 2}],
}


@pytest.mark.parametrize("name", [*PARAMETERS, "layout"])
def test_every_axis_has_units(name):
    assert describe_coordinate(name, read_grid({"axes": AXES}))["units"]


@pytest.mark.parametrize(("scaling", "word"), [("weak", "replica"), ("strong", "mini-batch")])
def test_the_batch_is_what_the_scaling_says(scaling, word):
    grid = read_grid({"axes": AXES, "scaling": scaling})
    assert word in describe_coordinate("batch", grid)["long_name"]
