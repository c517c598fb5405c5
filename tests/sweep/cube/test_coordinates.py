import pytest

from grids.entries.parameters import PARAMETERS
from sweep.cube.coordinates import describe_coordinate


@pytest.mark.parametrize("dim", PARAMETERS)
def test_every_axis_has_units(dim):
    assert describe_coordinate(dim, "weak")["units"]


def test_the_batch_is_what_the_scaling_says():
    assert "replica" in describe_coordinate("batch", "weak")["long_name"]
    assert "mini-batch" in describe_coordinate("batch", "strong")["long_name"]
