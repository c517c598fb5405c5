"""Ranges of needs: with such a value as many draws reach the goal as are said to."""

import numpy as np
import pytest
from open_answers import list_needs

from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.entries.strategies import Strategy
from paradl.grids.inputs.draws import DRAWS
from paradl.sweep.uncertainty.draws import draw_times


def read_grid(**settings):
    return make_grid(
        SpaceValues("vgg16", "64,1024", 32, "imagenet", "abci", strategy="data", settings=settings)
    )


def count_met(row, parameter, value, goal):
    """In how many draws a cell of one value of a parameter reaches an efficiency."""
    times = []
    for pe, strategy in ((row["pe"], None), (1, Strategy("serial"))):
        parameters = {parameter: f"{value!r} B/s" if parameter == "inter_bandwidth" else value}
        options = SpaceValues(
            "vgg16", pe, 32, "imagenet", "abci", strategy="data", parameters=parameters
        )
        case = make_grid(options).ask_intervals().case((0, 0, 0, 0), None, strategy)
        assert case is not None
        times.append(draw_times(case))
    efficiencies = times[1].ravel() / times[0].ravel() / row["pe"]
    return int((efficiencies >= goal).sum())


def test_as_many_draws_reach_the_goal_as_are_said_to():
    first, second = list_needs(read_grid(), "inter_bandwidth", efficiency=0.6)
    few, many = int(np.ceil(0.1 * DRAWS)), int(np.ceil(0.9 * DRAWS))
    assert first["needed_p10"] < first["needed"] < first["needed_p90"]
    for row, value, count in (
        (first, first["needed_p10"], few),
        (first, first["needed_p90"], many),
        (second, second["needed_p10"], few),
    ):
        assert count_met(row, "inter_bandwidth", value * 1.001, 0.6) >= count
        assert count_met(row, "inter_bandwidth", value * 0.999, 0.6) < count
    assert first["met_probability"] == 1
    # Of many PEs the goal is out of reach in more than a tenth of the draws.
    assert second["met_probability"] == count_met(second, "inter_bandwidth", 12.5e15, 0.6) / DRAWS
    assert 0 < second["met_probability"] < 0.9
    assert second["needed_p90"] is None


def test_never_tells_how_far_one_comes():
    (row, _) = list_needs(read_grid(), "inter_latency", efficiency=0.7)
    assert row["reason"].startswith("never: ")
    assert row["met_probability"] == 0
    assert row["needed_p10"] is row["needed_p90"] is None
    best = float(row["reason"].split()[1].rstrip("%")) / 100
    assert row["efficiency_p10"] < best < row["efficiency_p90"] < 0.7


def test_memory_and_table_iii_have_none():
    for grid, parameter, goal in (
        (read_grid(oracle="paper"), "inter_bandwidth", 0.6),
        (read_grid(), "memory_capacity", None),
    ):
        row = list_needs(grid, parameter, efficiency=goal)[0]
        assert "needed_p10" not in row
        assert "met_probability" not in row


@pytest.mark.parametrize("parameter", ["inter_latency", "inter_bandwidth"])
def test_any_value_will_do(parameter):
    row = list_needs(read_grid(), parameter, efficiency=1e-9)[0]
    assert (row["reason"], row["met_probability"]) == ("any value will do", 1)
    assert row["needed_p10"] is row["needed_p90"] is None
