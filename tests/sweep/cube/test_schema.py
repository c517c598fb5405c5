import pytest

from grids.entries.parameters import PARAMETERS
from grids.spec import INTERVALS, OUTPUTS
from kernels.flags import Limit
from sweep.cube.schema import LONG_NAMES, coordinate, dtype, fill_value, names, variable


def test_every_output_has_a_name():
    assert set(LONG_NAMES) == {*OUTPUTS, *INTERVALS, "serial_time"}


@pytest.mark.parametrize("dim", PARAMETERS)
def test_every_axis_has_units(dim):
    assert coordinate(dim, "weak")["units"]


def test_the_batch_is_what_the_scaling_says():
    assert "replica" in coordinate("batch", "weak")["long_name"]
    assert "mini-batch" in coordinate("batch", "strong")["long_name"]


def test_what_is_not_written_cannot_exist():
    assert fill_value("limit") == Limit.INCOMPATIBLE
    assert fill_value("comp_time") != fill_value("comp_time")
    assert dtype("limit") == "uint8"


def test_flags_have_names():
    assert names(0) == []
    assert names(Limit.MEMORY | Limit.UNEVEN) == ["memory", "uneven"]
    assert variable("limit")["flag_masks"] == [1, 2, 4, 8, 16, 32, 64]
