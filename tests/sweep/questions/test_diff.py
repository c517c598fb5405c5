"""Differences of two cubes, against xarray's own arithmetic on both."""

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cubes import SMALL, unmark
from open_answers import show_difference

import paradl
from paradl.grids.reading.errors import InputError

AXES = {
    **SMALL["axes"],
    "model": "alexnet",
    "dataset": "imagenet-226",
    "strategy": ["data", "data+filter", "data+channel", "spatial"],
    "pe": [1, 2, 4, 8, 64],
}


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Four cubes: one, one on slower links that has other batches, one with an axis more."""
    folder = tmp_path_factory.mktemp("diff")
    slow = {"inter_bandwidth": "0.1 GB/s", "intra_bandwidth": "0.1 GB/s"}
    specs: dict[str, dict[str, Any]] = {
        "first": {"axes": AXES},
        "slow": {"axes": {**AXES, "batch": [64, 32]}, "parameters": slow},
        "wide": {
            "axes": {**AXES, "inter_bandwidth": ["0.1 GB/s", "1 GB/s"]},
            "parameters": {"intra_bandwidth": "0.1 GB/s"},
        },
    }
    for name, spec in specs.items():
        paradl.run({"oracle": "paper", **spec}, folder / f"{name}.zarr")
    return {name: str(folder / f"{name}.zarr") for name in specs}


def test_a_cube_is_itself(urls: dict[str, str]) -> None:
    for other in (urls["first"], paradl.open_dataset(urls["first"])):
        difference = paradl.diff(urls["first"], other)
        assert difference["same"]
        assert difference["compared"] == difference["cells"] == 40
        assert not difference["inputs"] + difference["axes"] + difference["winners"]


def test_the_order_of_labels_changes_no_answer(tmp_path) -> None:
    axes = {**AXES, "system": ["abci", "dgx1-v100"]}
    turned = {name: values[::-1] for name, values in axes.items() if isinstance(values, list)}
    paradl.run({"axes": axes}, tmp_path / "one.zarr")
    paradl.run({"axes": {**axes, **turned}}, tmp_path / "other.zarr")
    difference = paradl.diff(tmp_path / "one.zarr", tmp_path / "other.zarr")
    assert difference["same"]
    assert difference["compared"] == 80
    assert not difference["inputs"] + difference["axes"] + difference["winners"]


def test_groups_that_only_one_has_are_no_difference(tmp_path) -> None:
    for size in (2, 4):
        strategies = ["data", f"data+placement:group={size}"]
        paradl.run({"axes": {**AXES, "strategy": strategies}}, tmp_path / f"{size}.zarr")
    difference = paradl.diff(tmp_path / "2.zarr", tmp_path / "4.zarr")
    assert [axis["axis"] for axis in difference["axes"]] == ["strategy"]
    assert not difference["inputs"]


def test_what_changed_is_what_xarray_says(urls: dict[str, str]) -> None:
    difference = paradl.diff(urls["first"], urls["slow"])
    first, second = (paradl.open_dataset(urls[value]).load() for value in ("first", "slow"))
    first, second = (value.sel(batch=[32]) for value in (first, second))
    assert not difference["same"]
    assert [row["key"] for row in difference["inputs"]] == [
        "parameters.inter_bandwidth",
        "parameters.intra_bandwidth",
    ]
    (axis,) = difference["axes"]
    assert axis == {"axis": "batch", "shared": 1, "only_first": [16], "only_second": [64]}
    assert difference["compared"] == first["limit"].size
    for row in difference["answers"]:
        a, b = (value[row["variable"]].values.astype(float) for value in (first, second))
        changed = (a != b) & ~np.isnan(a + b)
        assert row["changed"] == changed.sum()
        assert (row["only_first"], row["only_second"]) == (0, 0)
        if row["changed"]:
            ratios = b[changed] / a[changed]
            assert row["median_ratio"] == pytest.approx(np.median(ratios), rel=2e-4)
            assert row["largest_ratio"] == pytest.approx(ratios.max())
            cell = {dim: row["where"][dim] for dim in first["limit"].dims}
            result = second.sel(cell)[row["variable"]] / first.sel(cell)[row["variable"]]
            assert float(result) == pytest.approx(row["largest_ratio"])
    assert {row["variable"]: bool(row["changed"]) for row in difference["answers"]} == {
        "comp_time": False,
        "comm_time": True,
        "memory": False,
    }


def test_the_earlier_of_two_equally_fast_strategies_wins(tmp_path) -> None:
    """Four segments tie with as many by the parameter; eight by the parameter are faster."""
    axes = {**AXES, "strategy": ["pipeline:segments=4", "pipeline"], "pe": 4, "batch": 64}
    for segments in (4, 8):
        spec = {"oracle": "paper", "axes": axes, "parameters": {"segments": segments}}
        paradl.run(spec, tmp_path / f"{segments}.zarr")
    (row,) = paradl.diff(tmp_path / "4.zarr", tmp_path / "8.zarr")["winners"]
    assert (row["first"], row["second"]) == ("pipeline:segments=4", "pipeline")


def find_winners(cube: xr.Dataset) -> list[str]:
    """The fastest feasible strategy of each PE count, by loops."""
    winners = []
    for pe in cube["pe"].values:
        times = {}
        for strategy in cube["strategy"].values:
            cells = cube.sel(pe=pe, strategy=strategy)
            feasible = cells.paradl.epoch_time.where(cells.paradl.feasible)
            times[str(strategy)] = float(feasible.min())
        known = {name: time for name, time in times.items() if time == time}
        winners.append(min(known, key=lambda name: known[name]))
    return winners


def test_winners_that_changed(urls: dict[str, str]) -> None:
    difference = paradl.diff(urls["first"], urls["slow"])
    first, second = (
        find_winners(paradl.open_dataset(urls[value]).load().sel(batch=[32]))
        for value in ("first", "slow")
    )
    changed = {pe: (a, b) for pe, a, b in zip(AXES["pe"], first, second, strict=True) if a != b}
    result = {
        pe: (row["first"], row["second"])
        for row in difference["winners"]
        for pe in AXES["pe"]
        if row["from_pe"] <= pe <= row["to_pe"]
    }
    assert result == changed
    assert changed


def test_winners_of_each_swept_bandwidth(urls: dict[str, str], tmp_path: Any) -> None:
    """A bandwidth is given, and no choice: each value has winners of its own."""
    swept = {**AXES, "batch": 32, "inter_bandwidth": ["0.1 GB/s", "12.5 GB/s"]}
    for name, intra in (("near", "0.1 GB/s"), ("far", "10 GB/s")):
        spec = {"oracle": "paper", "axes": swept, "parameters": {"intra_bandwidth": intra}}
        paradl.run(spec, tmp_path / name)
    cubes = [paradl.open_dataset(tmp_path / name).load() for name in ("near", "far")]
    result = paradl.diff(tmp_path / "near", tmp_path / "far")["winners"]
    expected = [
        (bandwidth, pe, *pair)
        for bandwidth in (1e8, 12.5e9)
        for pe, *pair in zip(
            AXES["pe"],
            *(find_winners(cube.sel(inter_bandwidth=bandwidth)) for cube in cubes),
            strict=True,
        )
        if pair[0] != pair[1]
    ]
    assert expected
    assert expected == [
        (row["inter_bandwidth"], pe, row["first"], row["second"])
        for row in result
        for pe in AXES["pe"]
        if row["from_pe"] <= pe <= row["to_pe"]
    ]


def test_an_axis_that_only_one_has(urls: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"^selection: .*'inter_bandwidth'"):
        paradl.diff(urls["first"], urls["wide"])
    slice_of = {"inter_bandwidth": 1e8, "batch": 32}
    for one, other in (("slow", "wide"), ("wide", "slow")):
        difference = paradl.diff(urls[one], urls[other], slice_of)
        assert not any(row["changed"] for row in difference["answers"])
        assert difference["compared"] == difference["cells"] == 20
        assert not difference["same"]  # they have other axes


def test_tolerance(urls: dict[str, str]) -> None:
    slices = [paradl.open_dataset(urls["first"]).load(), paradl.open_dataset(urls["first"]).load()]
    slices[1]["comp_time"] = slices[1]["comp_time"] * np.float32(1.001)
    defined = int(slices[0]["comp_time"].notnull().sum())
    assert paradl.diff(slices[0], slices[1])["answers"][0]["changed"] == defined > 0
    assert paradl.diff(slices[0], slices[1], tolerance=0.002)["same"]


def test_nothing_in_common(urls: dict[str, str]) -> None:
    cube = paradl.open_dataset(urls["first"])
    with pytest.raises(InputError, match="'pe'"):
        paradl.diff(cube.sel(pe=[1, 2]), cube.sel(pe=[4]))
    with pytest.raises(InputError, match=r"^selection: .*'weather'"):
        paradl.diff(cube, cube, {"weather": "fair"})


def test_the_command(
    urls: dict[str, str], cli: Callable[..., tuple[int, str, str]], tmp_path: Any
) -> None:
    code, out, _ = cli("diff", urls["first"], urls["first"], "--require-same")
    assert (code, out) == (0, "the same answers in 40 cells\n")
    code, out, message = cli("diff", urls["first"], urls["slow"], "--require-same")
    assert (code, "--require-same" in message) == (3, True)
    assert "1 of 3 variables changed in 20 cells" in out
    assert "parameters.inter_bandwidth" in out
    for form in ("json", "csv"):
        assert cli("diff", urls["first"], urls["slow"], "--format", form)[0] == 0


def test_a_block_that_is_not_done(small_url: str, tmp_path: Any) -> None:
    shutil.copytree(small_url, tmp_path / "other.zarr")
    unmark(tmp_path / "other.zarr", 1)
    difference = paradl.diff(small_url, tmp_path / "other.zarr")
    assert difference["compared"] < difference["cells"]
    assert not difference["same"]
    (note,) = difference["notes"]
    assert "other.zarr" in note


def test_values_of_axes_have_their_units(urls: dict[str, str], capsys) -> None:
    difference = paradl.diff(urls["first"], urls["first"])
    axis = {"axis": "inter_bandwidth", "shared": 1, "only_first": [1e10], "only_second": []}
    show_difference(difference | {"axes": [axis]}, "table")
    assert "10 GB/s" in capsys.readouterr().out
