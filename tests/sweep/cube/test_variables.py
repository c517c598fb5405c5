import pytest

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import read_grid
from paradl.grids.outputs import ELASTICITIES, INTERVALS, OUTPUTS
from paradl.sweep.cube.variables import VARIABLES, describe_coordinate


def test_every_output_is_in_the_table():
    assert set(VARIABLES) == {*OUTPUTS, *INTERVALS, *ELASTICITIES, "serial_time"}


@pytest.mark.parametrize(
    ("name", "long_name", "units"),
    [
        ("memory", "memory of the fullest PE", "byte"),
        ("comm_time_p50", "median of comm_time", "s"),
        ("epoch_time_p10", "10th percentile of the time of an epoch", "s"),
        ("group_size", "PEs in a group, p2", "1"),
    ],
)
def test_attributes_say_what_a_variable_is(name, long_name, units):
    assert VARIABLES[name].attributes == {"long_name": long_name, "units": units}


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
