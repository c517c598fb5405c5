"""Curves are the cells of the cube that nothing forbids, no more and no fewer."""

from typing import Any

import numpy as np
import pytest

import sweep
from grids.reading.errors import InputError
from sweep.errors import NothingFeasibleError
from sweep.questions.pictures.scaling import describe_scaling

ALEXNET: dict[str, Any] = {"model": "alexnet", "inter_bandwidth": "12.5 GB/s", "batch": 8}
WRONG: Any = "throughputs"


@pytest.mark.parametrize("quantity", ["time", "throughput", "efficiency"])
def test_points_are_the_feasible_cells(quantity, mixed):
    scaling = describe_scaling(mixed, ALEXNET, quantity)
    cells = mixed.sel(
        model="alexnet", dataset="imagenet-226", system="abci", batch=8, inter_bandwidth=12.5e9
    ).load()
    values = getattr(cells.paradl, {"time": "epoch_time"}.get(quantity, quantity))
    drawn = {curve.strategy: curve for curve in scaling.curves}
    assert {*drawn, *scaling.forbidden} == {*cells["strategy"].values}
    for name in cells["strategy"].values:
        feasible = cells.paradl.feasible.sel(strategy=name).values
        assert (name in drawn) == feasible.any()
        if name in drawn:
            np.testing.assert_array_equal(drawn[name].pe, cells["pe"].values[feasible])
            expected = values.sel(strategy=name).values[feasible]
            np.testing.assert_allclose(drawn[name].values, expected, rtol=1e-6)


def test_causes_are_those_of_limits(mixed):
    selection = ALEXNET | {"dataset": "imagenet-226"}
    curves = describe_scaling(mixed, selection).curves
    table = sweep.limits(mixed, selection=selection)
    rows: dict[str, Any] = {row["strategy"]: row for row in table.to_dict("records")}
    for curve in curves:
        assert curve.pe[-1] == rows[curve.strategy]["largest_pe"]
        expected = rows[curve.strategy]["forbidden_by"].replace("_", " ").replace("pes", "PEs")
        assert (curve.cause or "end of the axis") == expected
    assert any(curve.cause == "too many PEs" for curve in curves)


def test_points_of_a_hybrid_are_joined_across_its_multiples(mixed):
    curves = {each.strategy: each for each in describe_scaling(mixed, ALEXNET).curves}
    hybrid = curves["data+filter"]
    assert hybrid.pe.tolist() == [4, 8, 12]
    assert np.isfinite(hybrid.values).all()


def test_a_store_a_dataset_and_a_slice_say_the_same(mixed, mixed_url):
    part = mixed.sel(model="alexnet", batch=8, inter_bandwidth=12.5e9)
    stored = describe_scaling(mixed_url, ALEXNET)
    for other in (describe_scaling(mixed, ALEXNET), describe_scaling(part)):
        assert (other.place, other.forbidden) == (stored.place, stored.forbidden)
        for mine, theirs in zip(stored.curves, other.curves, strict=True):
            assert (mine.strategy, mine.cause) == (theirs.strategy, theirs.cause)
            np.testing.assert_array_equal(mine.values, theirs.values)
    assert stored.place == "alexnet, imagenet-226 on abci, b = 8, inter bandwidth = 12.5 GB/s"


def test_colours_go_by_all_strategies_of_the_cube(mixed):
    known = tuple(mixed["strategy"].values)
    assert describe_scaling(mixed, ALEXNET | {"strategy": ["data"]}).known == known


@pytest.mark.parametrize(
    ("quantity", "ends"),
    [("time", (0.8, 1.5)), ("throughput", (1 / 1.5, 1 / 0.8))],
)
def test_bands_are_the_percentiles_of_the_cube(quantity, ends, mixed):
    time = mixed.paradl.epoch_time
    cube = mixed.assign(epoch_time_p10=0.8 * time, epoch_time_p90=1.5 * time)
    for curve in describe_scaling(cube, ALEXNET, quantity).curves:
        assert curve.low is not None
        assert curve.high is not None
        np.testing.assert_allclose(curve.low, ends[0] * curve.values, rtol=1e-6)
        np.testing.assert_allclose(curve.high, ends[1] * curve.values, rtol=1e-6)


def test_bands_of_efficiency_are_of_times_that_belong_together(machine_url):
    """What slows one PE slows all: nothing is unsure at one PE, and little beyond."""
    cube = sweep.open_dataset(machine_url).load()
    time = cube.paradl.epoch_time
    cube = cube.assign(epoch_time_p10=0.5 * time, epoch_time_p90=2 * time)
    (curve,) = describe_scaling(cube, quantity="efficiency").curves
    assert curve.low is not None
    assert curve.high is not None
    assert (curve.low[0], curve.high[0]) == pytest.approx((1, 1), rel=1e-6)
    assert (curve.low[1:] < curve.values[1:]).all()
    assert (curve.high[1:] > curve.values[1:]).all()
    assert (curve.high < 1.2).all()


def test_no_band_where_none_is_stored(mixed):
    assert all(curve.low is None for curve in describe_scaling(mixed, ALEXNET).curves)


def test_all_axes_with_several_values_are_told_at_once(mixed):
    with pytest.raises(InputError, match="one value of batch, inter_bandwidth") as told:
        describe_scaling(mixed, {"model": "alexnet"})
    assert 'batch=8 inter_bandwidth="1 GB/s"' in str(told.value)
    assert "batch 8, 64" in str(told.value)


def test_what_is_advised_is_accepted(mixed):
    describe_scaling(mixed, {"model": "alexnet", "batch": "8", "inter_bandwidth": "1 GB/s"})


def test_a_quantity_that_is_none(mixed):
    with pytest.raises(InputError, match="throughput"):
        describe_scaling(mixed, ALEXNET, WRONG)


def test_an_empty_picture_is_refused(mixed):
    with pytest.raises(NothingFeasibleError, match="too many PEs"):
        describe_scaling(mixed, ALEXNET | {"strategy": "serial", "pe": [8, 12]})
