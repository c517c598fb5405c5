import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from cubes import arrays, stored, unmark

import paradl
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.kernels.blocks.outputs import read_output
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import make_plan
from paradl.sweep.cube.store import open_cube
from paradl.sweep.engine.progress import silent
from paradl.sweep.engine.run import Where, read_grid
from paradl.sweep.engine.run import sweep as execute
from paradl.sweep.errors import RunError

INLINE = Where()


def answers(grid: Grid, index: Any, cell: dict[str, float]) -> Answer | None:
    """The oracle asked about one cell alone."""
    case = grid.case(index, {name: np.array([value]) for name, value in cell.items()})
    return None if case is None else answer_case(case)


def assert_same(grid: Grid, url: str) -> None:
    """Every variable of a cell is what the oracle says of that cell alone.

    Every third cell along any axis.
    """
    cube = open_cube(url)
    everything = {name: stored(cube.group, name) for name in grid.spec.outputs}
    for index in product(*(range(size) for size in grid.shape)):
        if sum(index) % 3:
            continue
        cell = {
            name: values[i] for (name, values), i in zip(grid.axes.items(), index[4:], strict=True)
        }
        result = answers(grid, index[:4], cell)
        for name, values in everything.items():
            expected = np.nan if result is None else np.asarray(read_output(result, name)).item()
            if name == "limit":
                expected = int(Limit.INCOMPATIBLE) if result is None else expected
            np.testing.assert_allclose(values[index], expected, 1e-6, err_msg=f"{name} {index}")


def test_cells_are_what_the_oracle_says(mixed_grid, mixed_url):
    assert_same(mixed_grid, mixed_url)


def test_strong_scaling_and_formulas(tmp_path):
    spec = {
        "oracle": "paper",
        "scaling": "strong",
        "iterations": "ceil",
        "allreduce": "hierarchical",
        "collectives": "best",
        "optimizer": "adam",
        "times": "roofline",
        "parameters": {"gamma": 0.5},
        "axes": {
            "model": "alexnet",
            "dataset": "imagenet",
            "system": "dgx-h100",
            "strategy": ["data", "data+spatial", "pipeline"],
            "pe": [1, 6, 16],
            "batch": [4, 100],
            "segments": [2, 4],
            "group": [2, 4],
        },
    }
    paradl.run(spec, tmp_path / "cube.zarr")
    assert_same(read_grid(spec), str(tmp_path / "cube.zarr"))


def test_each_cell_chooses_its_segments(tmp_path):
    """The fastest allowed of what is asked for by hand, with as many as it has samples."""
    best = "data+pipeline:group=best,segments=best"
    by_hand = [f"data+pipeline:group={g},segments={n}" for g in (2, 3, 6) for n in (1, 2, 4, 8)]
    spec = {
        "oracle": "machine",
        "scaling": "strong",
        "axes": {
            "model": "alexnet",
            "dataset": "imagenet",
            "system": "abci",
            "strategy": [best, *by_hand],
            "pe": [2, 6],
            "batch": [1, 3, 12],
            "inter_bandwidth": ["1 MB/s", "10 GB/s"],
        },
        "outputs": ["comp_time", "comm_time", "memory", "limit", "group_size", "segment_count"],
    }
    url = str(tmp_path / "cube.zarr")
    paradl.run(spec, url)
    cube = paradl.open_dataset(url)
    time = (cube.comp_time + cube.comm_time).where(cube.limit & int(FORBIDS) == 0)
    fastest = time.sel(strategy=by_hand).min("strategy")
    np.testing.assert_allclose(time.sel(strategy=best), fastest, rtol=1e-6)
    chosen = cube.segment_count.sel(strategy=best)
    assert len(np.unique(chosen)) > 2
    assert (chosen <= cube.batch).all()


@pytest.fixture
def blocky(tmp_path, small) -> tuple[Grid, str]:
    """A store of many blocks that cut every axis, none done."""
    grid = read_grid(small)
    url = str(tmp_path / "blocky.zarr")
    plan = make_plan(grid.dims, grid.shape, 13, alone=2, shard_cells=2)
    create_cube(url, grid, plan)
    return grid, url


def test_however_the_cube_is_cut_it_is_the_same(blocky, small_url):
    grid, url = blocky
    assert open_cube(url).plan.blocks == 48
    execute(grid, url, False, INLINE, silent)
    assert arrays(url) == arrays(small_url)


def test_a_run_does_only_what_is_missing(small_url, small, tmp_path):
    url = tmp_path / "cube.zarr"
    shutil.copytree(small_url, url)
    whole = arrays(url)
    seen: list[int] = []
    unmark(url, 2)
    for part in ("comp_time/c.1.0.0.0.0.0", "memory/c.1.0.0.0.0.0"):
        (url / part).unlink()
    assert arrays(url) != whole
    paradl.run(small, url, progress=recorded(seen))
    assert seen == [2]
    assert arrays(url) == whole


def recorded(seen: list[int]):
    from contextlib import contextmanager

    @contextmanager
    def progress(plan, done):
        yield seen.append

    return progress


def test_a_finished_sweep_is_left_alone(small_url, small):
    before = {path: path.stat().st_mtime_ns for path in Path(small_url).rglob("*")}
    paradl.run(small, small_url)
    assert {path: path.stat().st_mtime_ns for path in Path(small_url).rglob("*")} == before


def test_a_finished_sweep_needs_no_memory(small_url, small, monkeypatch):
    monkeypatch.setattr("paradl.sweep.engine.resources.machine_memory", lambda: 10**6)
    paradl.run(small, small_url)
    small["axes"]["batch"] = [16, 32, 64]
    with pytest.raises(InputError, match="memory"):
        paradl.run(small, small_url, extend=True)


@pytest.mark.parametrize("option", ["overwrite", "extend"])
def test_partial_files_of_a_killed_run_go(option, small_url, small, tmp_path):
    url = tmp_path / "cube.zarr"
    shutil.copytree(small_url, url)
    partial = [url / "zarr.0123.partial", url / "comp_time" / "c.0123.partial"]
    for path in partial:
        path.touch()
    small["axes"]["batch"] = [16, 32, 64]
    paradl.run(small, url, overwrite=option == "overwrite", extend=option == "extend")
    assert not any(path.exists() for path in partial)


def test_another_spec_is_refused_with_the_difference(small_url, small):
    before = arrays(small_url)
    small["axes"]["batch"] = [16]
    with pytest.raises(InputError, match=r"axes.batch: \[16, 32\] in the store, \[16\] now"):
        paradl.run(small, small_url)
    assert arrays(small_url) == before


def test_overwrite_starts_anew(small_url, small, tmp_path):
    url = tmp_path / "cube.zarr"
    shutil.copytree(small_url, url)
    identity = open_cube(str(url)).identity
    small["axes"] |= {"batch": [4], "gamma": [0.5, 1]}
    dataset = paradl.run(small, url, overwrite=True)
    assert dataset.sizes["batch"] == 1
    assert dataset.sizes["gamma"] == 2
    assert open_cube(str(url)).identity != identity


def test_a_half_made_store_is_made_again(small_url, small, tmp_path):
    url = tmp_path / "cube.zarr"
    shutil.copytree(small_url, url)
    shutil.rmtree(url / "pe")
    group = zarr.open_group(url, mode="r+", use_consolidated=False)
    group.attrs.put({"paradl_incomplete": True})
    paradl.run(small, url)
    assert arrays(url) == arrays(small_url)


@pytest.mark.parametrize("gone", ["progress", "comp_time"])
def test_an_overwrite_cut_short_leaves_nothing_of_the_old_cube(gone, small_url, small, tmp_path):
    url = tmp_path / "cube.zarr"
    shutil.copytree(small_url, url)
    zarr.open_group(url, mode="r+").attrs.put({"paradl_incomplete": True})
    # Files of a folder are deleted in any order: here the metadata first.
    for path in (url / gone).rglob("zarr.json"):
        path.unlink()
    # Other pairs fit now, and more blocks are there.
    small["axes"] |= {"model": ["cosmoflow", "alexnet", "vgg16"]}
    paradl.run(small, url)
    assert arrays(url) == arrays(sweep_anew(small, tmp_path))


def sweep_anew(spec: dict[str, Any], folder: Path) -> Path:
    url = folder / "anew.zarr"
    paradl.run(spec, url)
    return url


@pytest.mark.parametrize("damaged", ["comp_time", "summary"])
def test_damaged_metadata_are_overwritten(damaged, small_url, small, tmp_path):
    url = tmp_path / "cube.zarr"
    shutil.copytree(small_url, url)
    (url / damaged / "zarr.json").write_text("[")
    (url / "notes").mkdir()
    paradl.run(small, url, overwrite=True)
    assert arrays(url) == arrays(small_url)
    assert (url / "notes").is_dir()


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("what", ["folder", "file", "zarr group", "zarr array", "zarr v2"])
def test_what_is_not_ours_is_left_alone(what, overwrite, small, tmp_path):
    url = tmp_path / "precious"
    make_foreign(what, url)
    before = contents(url)
    with pytest.raises(InputError):
        paradl.run(small, url, overwrite=overwrite)
    assert contents(url) == before


def make_foreign(what: str, url: Path) -> None:
    match what:
        case "folder":
            url.mkdir()
            (url / "notes.txt").write_text("mine")
        case "file":
            url.write_text("mine")
        case "zarr group":
            zarr.create_group(url, attributes={"mine": True}).create_array(
                "comp_time", shape=(2,), dtype="f4"
            )
        case "zarr array":
            zarr.create_array(url, shape=(2,), dtype="f4")
        case "zarr v2":
            zarr.create_group(url, zarr_format=2)


def contents(path: Path) -> dict[str, bytes]:
    files = (
        [path] if path.is_file() else sorted(path_ for path_ in path.rglob("*") if path_.is_file())
    )
    return {str(file): file.read_bytes() for file in files}


def test_workers_and_scheduler_exclude_each_other():
    with pytest.raises(InputError, match="got both"):
        Where(2, "tcp://127.0.0.1:8786")


def test_a_place_that_cannot_be(small, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises((InputError, RunError), match="Not a directory"):
        paradl.run(small, tmp_path / "file" / "cube.zarr")


@pytest.mark.parametrize("store", [None, "", " ", 7, b"cube.zarr", ["cube.zarr"]])
def test_a_store_that_is_no_place(store, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for question in (lambda: paradl.run(small, store), lambda: paradl.open_dataset(store)):
        with pytest.raises(InputError, match="store: expected a folder or an object-store URL"):
            question()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("spec", "more", "message"),
    [
        (None, {}, "spec: expected a YAML file or a mapping, got None"),
        (["axes"], {}, "spec: expected a YAML file or a mapping"),
        ({}, {"workers": "2"}, "workers: expected 0 or more, got '2'"),
        ({}, {"workers": 1.5}, "workers: expected 0 or more, got 1.5"),
    ],
)
def test_an_argument_of_another_type(spec, more, message, small, tmp_path):
    with pytest.raises(InputError, match=message):
        paradl.run(small if spec == {} else spec, tmp_path / "cube.zarr", **more)
    assert list(tmp_path.iterdir()) == []
