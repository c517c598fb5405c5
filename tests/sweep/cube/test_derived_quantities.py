from typing import Any

import numpy as np
import pytest
import xarray as xr

import paradl
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.terms import TERMS

SAMPLES = 1_280_000  # of imagenet-226
ALEXNET = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci"}


@pytest.fixture
def one(mixed) -> xr.Dataset:
    """Data parallelism on 8 PEs, 64 samples each."""
    return mixed.sel(**ALEXNET, strategy="data", pe=8, batch=64, inter_bandwidth=12.5e9)


def test_one_cell_by_hand(one):
    time = float(one.comp_time) + float(one.comm_time)
    assert float(one.paradl.epoch_time) == pytest.approx(time)
    assert float(one.paradl.replicas) == 8
    assert float(one.paradl.global_batch) == 512
    assert float(one.paradl.iterations) == SAMPLES / 512
    assert float(one.paradl.iteration_time) == pytest.approx(time / 2500)
    assert float(one.paradl.throughput) == pytest.approx(SAMPLES / time)
    assert float(one.paradl.speedup) == pytest.approx(float(one.serial_time) / time)
    assert float(one.paradl.efficiency) == pytest.approx(float(one.serial_time) / time / 8)
    assert bool(one.paradl.feasible)


def test_everything_is_labelled_and_lazy(mixed_url):
    cube = paradl.open_dataset(mixed_url)
    for name in (
        "epoch_time",
        "throughput",
        "speedup",
        "efficiency",
        "iteration_time",
        "bottleneck",
    ):
        result = getattr(cube.paradl, name)
        assert result.name == name
        assert result.chunks is not None
        assert result.attrs["units"]
        assert result.dims == cube.comp_time.dims


def test_one_pe_has_speedup_one(mixed):
    serial = mixed.sel(**ALEXNET, strategy="serial", pe=1)
    np.testing.assert_allclose(serial.paradl.speedup, 1)
    np.testing.assert_allclose(serial.paradl.efficiency, 1)


def test_feasible_is_no_forbidding_flag(mixed):
    pipeline = mixed.sel(**ALEXNET, strategy="pipeline:segments=8")
    np.testing.assert_array_equal(
        pipeline.paradl.feasible, np.isin(pipeline.limit.values & 31, [0])
    )
    assert not mixed.sel(model="alexnet", dataset="cosmoflow-128").paradl.feasible.any()


def test_replicas_follow_the_strategy(mixed):
    rebuilt = mixed.drop_vars("replicas").isel(strategy=[0, 1, 2, 3, 4]).paradl.replicas
    np.testing.assert_array_equal(rebuilt.sel(strategy="data").squeeze(), [1, 3, 4, 8, 12])
    np.testing.assert_array_equal(rebuilt.sel(strategy="serial").squeeze(), 1)
    np.testing.assert_array_equal(rebuilt.sel(strategy="channel").squeeze(), 1)
    np.testing.assert_array_equal(rebuilt.sel(strategy="data+filter").squeeze(), [1, 1, 1, 2, 3])


def test_replicas_agree_with_the_stored_ones(mixed):
    known = mixed.isel(strategy=[0, 1, 2, 3, 4]).sel(ALEXNET)
    rebuilt = known.drop_vars("replicas").paradl.replicas
    stored = known.replicas.where(known.replicas.notnull(), rebuilt)
    np.testing.assert_array_equal(*xr.broadcast(rebuilt, stored))


def test_a_group_that_was_chosen_must_be_stored(mixed):
    without = mixed.drop_vars("replicas").sel(strategy="data+spatial:group=best")
    with pytest.raises(InputError, match="add 'replicas' to the spec's outputs"):
        _ = without.paradl.iterations
    assert mixed.sel(strategy="data+spatial:group=best").paradl.iterations.notnull().any()


@pytest.mark.parametrize("how", ["axis", "fixed", "strategy"])
def test_the_group_of_hybrids_may_come_from_anywhere(how, tmp_path):
    axes = {
        "model": "alexnet",
        "dataset": "imagenet",
        "system": ["abci", "dgx-h100"],
        "strategy": "data+filter:group=2" if how == "strategy" else "data+filter",
        "pe": [2, 8],
        "batch": 32,
    }
    spec = {"oracle": "paper", "axes": axes | ({"group": [2]} if how == "axis" else {})}
    spec |= {"parameters": {"group": 2}} if how == "fixed" else {}
    cube = paradl.run(spec, tmp_path / "cube.zarr")
    np.testing.assert_array_equal(cube.paradl.replicas.transpose("pe", ...).isel(pe=1), 4)


def test_replicas_of_layouts_follow_their_degrees(tmp_path):
    """Those that a strategy states, an axis, and none of the experts, who divide the same PEs."""
    axes: dict[str, Any] = {
        "model": "mixtral_8x7b",
        "dataset": "pile",
        "system": "dgx-h100",
        "strategy": ["data", "data+tensor:tensor=4", "data+tensor+expert:expert=8"],
        "pe": 16,
        "batch": 4,
        "tensor": 2,
    }
    cube = paradl.run({"axes": axes}, tmp_path / "cube.zarr")
    np.testing.assert_array_equal(cube.paradl.replicas.squeeze(), [16, 4, 8])
    chosen = {"axes": axes | {"strategy": "data+tensor:tensor=best"}}
    with pytest.raises(InputError, match="add 'replicas' to the spec's outputs"):
        _ = paradl.run(chosen, tmp_path / "chosen.zarr").paradl.iterations


def test_layouts_accumulate_passes_as_others_do(tmp_path):
    axes: dict[str, Any] = {
        "model": "llama2_7b",
        "dataset": "pile",
        "system": "dgx-h100",
        "strategy": ["data", "data+filter:group=2"],
        "pe": 8,
        "batch": 4,
        "accumulate": [1, 3],
    }
    cube = paradl.run({"axes": axes}, tmp_path / "cube.zarr")
    counted = cube.paradl.global_batch.squeeze().transpose("strategy", "accumulate")
    np.testing.assert_array_equal(counted, [[32, 96], [16, 48]])


def test_strong_scaling_and_whole_iterations(tmp_path):
    axes: dict[str, Any] = {
        "model": "alexnet",
        "dataset": "cifar10",
        "system": "abci",
        "strategy": "data",
    }
    axes |= {"model": "resnet50", "pe": [1, 4], "batch": [96]}
    spec = {"oracle": "paper", "scaling": "strong", "iterations": "ceil", "axes": axes}
    cube = paradl.run(spec, tmp_path / "cube.zarr")
    assert (cube.paradl.global_batch == 96).all()
    assert (cube.paradl.iterations == np.ceil(50_000 / 96)).all()


def test_the_bottleneck_names_the_largest_part(mixed, one):
    result = one.paradl.bottleneck
    parts = result.attrs["flag_meanings"].split()
    assert parts[int(result)] == max(parts, key=lambda part: float(one[part]))
    assert (mixed.sel(model="alexnet", dataset="cosmoflow-128").paradl.bottleneck == -1).all()


def test_what_is_hidden_is_no_bottleneck(one):
    assert "hidden_communication" in one
    parts = one.paradl.bottleneck.attrs["flag_meanings"].split()
    assert set(TERMS) - set(parts) == {"hidden_communication"}


def test_the_bottleneck_of_a_cube_without_terms(one):
    result = one[["comp_time", "comm_time"]].assign_attrs(one.attrs).paradl.bottleneck
    assert result.attrs["flag_meanings"] == "comp_time comm_time"
    assert int(result) == int(one.comm_time > one.comp_time)


def test_reasons(mixed):
    assert mixed.paradl.reasons(1 | 32) == ["memory", "uneven"]


def test_another_dataset_has_none_of_it():
    with pytest.raises(InputError, match="paradl_spec"):
        _ = xr.Dataset({"comp_time": 1.0, "comm_time": 2.0}).paradl.grid


@pytest.mark.parametrize(
    ("change", "quantity", "message"),
    [
        (lambda ds: ds.isel(pe=0, drop=True), "efficiency", "the Dataset has no 'pe'"),
        (lambda ds: ds.drop_vars("comp_time"), "epoch_time", "the Dataset has no 'comp_time'"),
        (lambda ds: ds.drop_vars("serial_time"), "speedup", "the Dataset has no 'serial_time'"),
        (lambda ds: ds.isel(dataset=0, drop=True), "throughput", "the Dataset has no 'dataset'"),
        (lambda ds: ds.where(ds.pe > 1), "feasible", "limit: expected flags of type uint16"),
        (lambda ds: ds.mean("batch"), "iterations", "the Dataset has no 'batch'"),
        # A label of another cube's, of which this one's spec says nothing.
        (lambda ds: renamed(ds, "dataset"), "throughput", "'other' is not a dataset of the spec"),
        (
            lambda ds: renamed(ds, "strategy"),
            "global_batch",
            "'other' is not a strategy of the spec",
        ),
    ],
)
def test_what_a_slice_has_lost_is_told(mixed, change, quantity, message):
    changed = change(mixed.drop_vars("replicas"))
    with pytest.raises(InputError, match=message):
        getattr(changed.paradl, quantity)


def renamed(cube: xr.Dataset, dim: str) -> xr.Dataset:
    return cube.assign_coords({dim: ["other", *cube[dim].values[1:].tolist()]})
