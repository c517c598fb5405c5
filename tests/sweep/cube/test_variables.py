import pytest

from paradl.grids.outputs import ELASTICITIES, INTERVALS, OUTPUTS
from paradl.sweep.cube.variables import VARIABLES


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
