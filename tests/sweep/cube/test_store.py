import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from cubes import zarr_array

import paradl
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.flags import Limit
from paradl.sweep.cube.creation import consolidate_metadata, create_cube
from paradl.sweep.cube.plan import make_plan, plan_cube
from paradl.sweep.cube.root import remove_partial
from paradl.sweep.cube.store import open_cube
from paradl.sweep.engine.run import read_grid


@pytest.fixture
def alone(mixed_url: str) -> xr.Dataset:
    """The cube as plain xarray opens it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return xr.open_zarr(mixed_url)


def test_plain_xarray_opens_a_labelled_dataset(alone, mixed_grid):
    assert alone.comp_time.dims == mixed_grid.dims
    assert dict(alone.sizes) == dict(zip(mixed_grid.dims, mixed_grid.shape, strict=True))
    assert alone.strategy.values.tolist() == list(mixed_grid.labels["strategy"])
    assert alone.pe.dtype == np.int64
    assert alone.pe.values.tolist() == [1, 3, 4, 8, 12]
    assert alone.inter_bandwidth.values.tolist() == [1e9, 12.5e9]
    assert alone.comp_time.dtype == np.float32


def test_a_label_selects(alone):
    result = alone.sel(model="alexnet", dataset="imagenet-226", strategy="data", pe=8, batch=64)
    assert np.isfinite(result.comp_time.values).all()


def test_every_array_has_a_zarr_v3_chunk_per_block(mixed_url):
    group = zarr.open_group(mixed_url, mode="r")
    plan = open_cube(mixed_url).plan
    assert group.metadata.zarr_format == 3
    array = zarr_array(group, "comp_time")
    assert array.shards is None
    assert array.chunks == plan.shard


def test_every_variable_has_cf_attributes(alone):
    for name in alone.data_vars:
        assert alone[name].attrs["long_name"]
        assert ("units" in alone[name].attrs) != (name == "limit")
    assert alone.attrs["Conventions"].startswith("CF-")
    assert alone.comp_time.attrs["units"] == "s"
    assert alone.memory.attrs["units"] == "byte"
    assert alone.inter_bandwidth.attrs["units"] == "byte s-1"


def test_flags_follow_cf(alone):
    meanings = alone.limit.attrs["flag_meanings"].split()
    masks = alone.limit.attrs["flag_masks"]
    assert [Limit[meaning.upper()].value for meaning in meanings] == masks
    assert len(masks) == len(Limit)


def test_provenance_is_inside(alone):
    versions = json.loads(alone.attrs["paradl_versions"])
    assert versions["jax"]
    assert alone.attrs["source"] == f"paradl {versions['paradl']}"
    assert json.loads(alone.attrs["paradl_sources"])["alexnet"]
    assert "paradl_incomplete" not in alone.attrs


def test_the_spec_inside_is_complete(alone, mixed_grid):
    again = Grid.from_definition(json.loads(alone.attrs["paradl_spec"]))
    assert again.labels == mixed_grid.labels
    assert again.systems == mixed_grid.systems
    assert again.fitting[0, 0].macs == mixed_grid.fitting[0, 0].macs
    assert again.definition() == mixed_grid.definition()


def test_the_cube_needs_no_file_of_the_users(tmp_path, small):
    text = (Path(__file__).parents[3] / "grids/catalogue/systems/abci.yaml").read_text()
    own = tmp_path / "mine.yaml"
    own.write_text(text.replace("name: abci", "name: mine"))
    (tmp_path / "spec.yaml").write_text(
        json.dumps({"oracle": "paper", "axes": small["axes"] | {"system": "mine.yaml"}})
    )
    paradl.run(tmp_path / "spec.yaml", tmp_path / "cube.zarr")
    own.unlink()
    assert open_cube(str(tmp_path / "cube.zarr")).grid.systems[0].name == "mine"


def test_what_cannot_exist_is_marked_and_not_written(alone, mixed_url):
    impossible = alone.sel(model="alexnet", dataset="cosmoflow-128")
    assert (impossible.limit == Limit.INCOMPATIBLE).all()
    assert impossible.comp_time.isnull().all()
    assert impossible.serial_time.isnull().all()
    assert open_cube(mixed_url).read_done().all()
    names = (path.name.split(".") for path in Path(mixed_url, "comp_time").glob("c.*"))
    assert len({(model, dataset) for _, model, dataset, *_ in names}) == 2


def test_marks_are_set_and_cleared(tmp_path, small):
    grid = read_grid(small)
    cube = create_cube(str(tmp_path / "cube.zarr"), grid, plan_cube(grid))
    assert not cube.read_done().any()
    cube.mark([0, 2])
    assert cube.read_done().tolist() == [True, False, True, False]
    cube.mark([2], done=False)
    assert cube.read_done().tolist() == [True, False, False, False]


def test_the_plan_of_a_store_is_the_one_it_was_made_with(tmp_path, small):
    grid = read_grid(small)
    other = make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=6)
    create_cube(str(tmp_path / "cube.zarr"), grid, other)
    plan = open_cube(str(tmp_path / "cube.zarr")).plan
    assert plan.shard == other.shard
    assert plan.shard != plan_cube(grid).shard


def test_no_cube(tmp_path):
    with pytest.raises(InputError, match="paradl sweep SPEC STORE"):
        open_cube(str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()


def changed(url: Path, **attributes: object) -> None:
    group = zarr.open_group(url, mode="r+", use_consolidated=False)
    group.update_attributes(attributes)


@pytest.fixture
def made(tmp_path, small) -> Path:
    """A cube with no block done."""
    grid = read_grid(small)
    create_cube(str(tmp_path / "cube.zarr"), grid, plan_cube(grid))
    return tmp_path / "cube.zarr"


def test_another_format(made):
    changed(made, paradl_format=99, source="paradl 9.0")
    with pytest.raises(InputError, match=r" 99; .* 4; .*paradl 9\.0"):
        open_cube(str(made))


def test_half_made(made):
    changed(made, paradl_incomplete=True)
    with pytest.raises(InputError, match=r"interrupted .*paradl sweep"):
        open_cube(str(made))


def test_a_spec_that_cannot_be_read(made):
    changed(made, paradl_spec="{")
    with pytest.raises(InputError, match="paradl_spec"):
        open_cube(str(made))


def test_an_array_that_is_gone(made):
    group = zarr.open_group(made, mode="r+", use_consolidated=False)
    del group["memory"]
    consolidate_metadata(group)
    with pytest.raises(InputError, match=r"'memory' .*overwrite"):
        open_cube(str(made))


def test_metadata_that_is_no_json(made):
    (made / "zarr.json").write_text("{")
    with pytest.raises(InputError, match=r"cube\.zarr: "):
        open_cube(str(made))


def test_a_zip_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="name a folder"):
        open_cube(str(tmp_path / "x.zip"))


def test_partial_files_of_killed_runs_go(made):
    stray = made / "memory" / "c.0123.partial"
    stray.write_bytes(b"half")
    remove_partial(str(made))
    assert not stray.exists()
    assert open_cube(str(made)).plan.blocks == 4
