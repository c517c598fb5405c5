"""A store says what its summary's statistics are: by name, and which version of them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr
from cubes import SMALL, stored

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import STATISTIC, SUMMARY, plan_cube
from paradl.sweep.cube.store import Cube, open_cube
from paradl.sweep.cube.variables import TABLE, Statistic, list_objectives
from paradl.sweep.engine.block import compute
from paradl.sweep.engine.run import read_grid
from paradl.sweep.questions.status import read_status, verify_status

CHEAPEST = Statistic("float32", np.nan, "least PE-hours of an epoch", "pe_hours")
AT = 3  # in the middle of those that are known
LATER = dict([*list(TABLE.items())[:AT], ("cheapest_hours", CHEAPEST), *list(TABLE.items())[AT:]])


def sweep_with(spec: dict, url: Path) -> Cube:
    """A finished store as a later paradl would make it, which knows one statistic more."""
    grid = read_grid(spec)
    cube = create_cube(str(url), grid, plan_cube(grid), LATER)
    for block in filter(cube.fits, range(cube.plan.blocks)):
        arrays = compute(grid, cube.plan, cube.plan.find_region(block)).arrays
        table = arrays[SUMMARY]
        arrays[SUMMARY] = np.insert(table, AT, 12345.0, axis=grid.dims.index("pe"))
        cube.write(block, arrays)
    cube.mark(range(cube.plan.blocks))
    return cube


@pytest.fixture(scope="module")
def later_url(tmp_path_factory) -> Path:
    url = tmp_path_factory.mktemp("later") / "cube.zarr"
    sweep_with(SMALL, url)
    return url


def test_a_store_names_its_statistics_and_objectives(small_url, later_url):
    group = zarr.open_group(small_url, mode="r")
    assert stored(group, STATISTIC).tolist() == list(TABLE)
    assert group[SUMMARY].attrs["version"] == 1
    assert group[SUMMARY].attrs["objectives"] == ["epoch_time", "train_time"]
    later = zarr.open_group(str(later_url), mode="r")
    assert stored(later, STATISTIC).tolist() == list(LATER)
    assert later[SUMMARY].attrs["objectives"] == ["epoch_time", "pe_hours", "train_time"]
    assert stored(later, SUMMARY).shape[4] == len(TABLE) + 1


def test_objectives_follow_from_the_table():
    assert list_objectives() == ["epoch_time", "train_time"]
    assert {name for name, value in TABLE.items() if value.objective == "epoch_time"} == {
        *(name for name in TABLE if name.startswith("fastest_")),
        "efficient_pe",
    }


@pytest.mark.parametrize("question", [paradl.limits, paradl.best])
def test_a_statistic_that_is_not_known_is_passed_over(small_url, later_url, question):
    for selection in ({}, {"strategy": "data", "batch": 32}):
        expected = question(small_url, selection=selection).to_dict("records")
        assert question(later_url, selection=selection).to_dict("records") == expected


def test_a_store_with_more_statistics_is_whole(later_url):
    assert read_status(str(later_url))["complete"]
    assert verify_status(str(later_url))["damaged"] == []


def test_names_that_are_lost_are_made_anew(small, tmp_path):
    url = tmp_path / "cube.zarr"
    sweep_with(small, url)
    expected = paradl.limits(url).to_dict("records")
    (url / STATISTIC / "c" / "0").unlink()
    assert paradl.limits(url).to_dict("records") == expected  # the root's metadata name them, too
    assert [place["variable"] for place in verify_status(str(url))["damaged"]] == [STATISTIC]
    assert stored(zarr.open_group(str(url), mode="r"), STATISTIC).tolist() == list(LATER)


def test_a_statistic_that_is_missing_is_stated(small, tmp_path):
    sweep_with(small, tmp_path / "cube.zarr")
    path = tmp_path / "cube.zarr" / "zarr.json"
    path.write_text(path.read_text().replace('"fastest_pe":', '"swiftest_pe":'))
    with pytest.raises(InputError, match="'fastest_pe'"):
        paradl.limits(tmp_path / "cube.zarr")


@pytest.mark.parametrize("version", [2, "1", None, "x" * 5000])
def test_another_version_is_refused(small_url, tmp_path, cli, version):
    url = shutil.copytree(small_url, tmp_path / "cube.zarr")
    path = url / "zarr.json"
    root = json.loads(path.read_text())
    root["consolidated_metadata"]["metadata"][SUMMARY]["attributes"]["version"] = version
    path.write_text(json.dumps(root))
    for question in ("limits", "best"):
        code, out, err = cli(question, url)
        assert (code, out) == (2, "")
        assert "version 1" in err
        assert len(err) < 1000
    assert len(paradl.limits(url, 0.9))  # which is computed from the cells
    assert open_cube(str(url)).read_done().all()


def test_a_summary_that_says_no_version_is_of_the_first(small_url, tmp_path):
    path = shutil.copytree(small_url, tmp_path / "cube.zarr") / "zarr.json"
    root = json.loads(path.read_text())
    attributes = root["consolidated_metadata"]["metadata"][SUMMARY]["attributes"]
    del attributes["version"], attributes["objectives"]
    path.write_text(json.dumps(root))
    assert len(paradl.limits(tmp_path / "cube.zarr"))
