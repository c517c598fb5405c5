import pytest

from grids.outputs import ELASTICITIES, INTERVALS, OUTPUTS
from kernels.names.flags import Limit
from sweep.cube.variables import VARIABLES, name_limits


def test_every_output_is_in_the_table():
    assert set(VARIABLES) == {*OUTPUTS, *INTERVALS, *ELASTICITIES, "serial_time"}


def test_what_is_not_written_cannot_exist():
    assert VARIABLES["limit"].fill_value == Limit.INCOMPATIBLE
    assert VARIABLES["comp_time"].fill_value != VARIABLES["comp_time"].fill_value
    assert VARIABLES["limit"].dtype == "uint16"


def test_flags_have_names():
    assert name_limits(0) == []
    assert name_limits(Limit.MEMORY | Limit.UNEVEN) == ["memory", "uneven"]
    assert VARIABLES["limit"].attributes["flag_masks"] == [2**n for n in range(10)]
    assert len(VARIABLES["limit"].attributes["flag_meanings"].split()) == 10


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
