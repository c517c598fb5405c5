"""Parameters that change together: their cube, what is selected of it, asked about and exported."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from cubes import arrays
from jsonschema import Draft202012Validator

import paradl
from paradl.grids.grid import LABELS, read_grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.answers.types.schemas import ANSWERS, build_schemas, list_answer_fields
from paradl.sweep.cells.memory_cube import compute_cells
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.cube.store import open_cube
from paradl.sweep.engine.block import run_block
from paradl.sweep.engine.verification import verify

EXAMPLE = Path(__file__).parents[2] / "examples" / "links.yaml"
AXES: dict[str, Any] = {
    "model": "alexnet",
    "dataset": "imagenet",
    "system": "abci",
    "strategy": ["data", "data+filter", "data+pipeline"],
    "pe": [4, 8],
    "batch": [16, 32],
}
LAYOUT = [
    {"group": 4, "segments": 8, "peak_flops": "15 TFLOP/s"},
    {"group": 2, "segments": 4, "peak_flops": "30 TFLOP/s"},
    {"group": 4, "segments": 2, "peak_flops": "30 TFLOP/s"},
]
SPEC: dict[str, Any] = {"oracle": "paper", "axes": AXES | {"layout": LAYOUT}}
# Machines: what is given, and has a ranking of its own.
LINKS: dict[str, Any] = {
    "oracle": "paper",
    "axes": AXES
    | {
        "strategy": ["data", "data+filter"],
        "link": {
            "columns": {
                "inter_bandwidth": ["12.5 GB/s", "25 GB/s"],
                "inter_latency": ["4 us", "2 us"],
            }
        },
    },
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the whole of SPEC."""
    path = tmp_path_factory.mktemp("rows") / "rows.zarr"
    paradl.run(SPEC, path)
    return str(path)


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the whole of LINKS."""
    path = tmp_path_factory.mktemp("links") / "links.zarr"
    paradl.run(LINKS, path)
    return str(path)


@pytest.mark.parametrize("oracle", ["paper", "machine"])
def test_a_cube_of_rows_is_the_diagonal_of_the_dense_one(oracle):
    dense = {
        "group": [2, 4],
        "segments": [2, 4, 8],
        "peak_flops": ["15 TFLOP/s", "30 TFLOP/s"],
    }
    axes = AXES | {"strategy": ["data+filter", "data+pipeline"]}
    thin, full = (
        compute_cells(read_grid({"oracle": oracle, "axes": axes | more}))
        for more in ({"layout": LAYOUT}, dense)
    )
    for row in range(len(LAYOUT)):
        mine = thin.isel(layout=row)
        others = full.sel({name: mine[name].item() for name in dense})
        for name, values in mine.data_vars.items():
            assert np.array_equal(
                values, others[name].transpose(*values.dims), equal_nan=values.dtype.kind == "f"
            ), (name, row)


def test_a_store_has_the_cells_of_its_rows(url):
    stored, computed = paradl.open_dataset(url), compute_cells(read_grid(SPEC))
    for name, values in computed.data_vars.items():
        np.testing.assert_allclose(stored[name], values, rtol=1e-6, err_msg=str(name))


def test_a_plain_reader_has_the_values_of_rows(url):
    cube = xr.open_zarr(url)
    assert cube.layout.values.tolist() == [0, 1, 2]
    assert cube.group.dims == ("layout",)
    assert cube.group.values.tolist() == [4, 2, 4]
    assert cube.peak_flops.attrs["units"] == "s-1"
    assert cube.set_xindex("group").sel(group=4).layout.values.tolist() == [0, 2]


def test_a_dataset_selects_by_values(url):
    cube = paradl.open_dataset(url)
    assert cube.sel(group=4).segments.values.tolist() == [8, 2]
    assert cube.sel(segments=2).layout.item() == 2


@pytest.mark.parametrize(
    ("selection", "rows"),
    [
        ({"layout": [2, "0"]}, [0, 2]),
        ({"group": 4}, [0, 2]),
        ({"peak_flops": "30 TFLOP/s"}, [1, 2]),
        ({"group": 4, "peak_flops": "30 TFLOP/s"}, [2]),
        ({"segments": "8,4"}, [0, 1]),
    ],
)
def test_questions_select_by_rows_and_by_values(url, selection, rows):
    for source in (url, paradl.open_dataset(url)):
        answer = paradl.limits(source, selection={**selection, "strategy": "data"})
        assert sorted({*answer["layout"]}) == rows
        assert {*answer["group"]} == {LAYOUT[row]["group"] for row in rows}


@pytest.mark.parametrize(
    "selection", [{"layout": 3}, {"group": 3}, {"group": 2, "segments": 8}, {"grop": 4}]
)
def test_a_value_that_no_row_has_is_refused(url, selection):
    with pytest.raises(InputError, match="selection"):
        paradl.limits(url, selection=selection)


def test_each_machine_has_a_ranking(links):
    machines = paradl.best(links)
    assert [*machines.groupby("link")["inter_bandwidth"].first()] == [12.5e9, 25e9]
    assert machines[machines["rank"] == 1]["link"].tolist() == [0, 1]
    slices = paradl.best(paradl.open_dataset(links))
    assert slices.drop(columns="rejection").equals(machines.drop(columns="rejection"))


def test_a_slice_answers_as_its_store_does(url):
    cube = paradl.open_dataset(url)
    for row in range(len(LAYOUT)):
        stored = paradl.limits(url, selection={"layout": row})
        assert paradl.limits(cube.isel(layout=row)).equals(stored)


def test_what_follows_from_the_group_is_that_of_its_row(url):
    cube = paradl.open_dataset(url).sel(strategy="data+filter", pe=8, drop=False)
    assert cube.paradl.replicas.values.squeeze().tolist() == [2, 4, 2]


@pytest.mark.parametrize("verb", ["best", "limits", "bottleneck", "pareto", "sensitivity"])
def test_answers_have_the_values_of_rows(links, cli, verb):
    cell = ("--sel", "pe=8", "--sel", "batch=32") if verb in ("bottleneck", "sensitivity") else ()
    chosen = ("--sel", "strategy=data", "--sel", "inter_bandwidth=25 GB/s", *cell)
    code, out, err = cli(verb, links, *chosen, "--format", "json")
    assert code == 0, err
    rows = json.loads(out)
    assert [*Draft202012Validator(build_schemas()[verb]).iter_errors(rows)] == []
    assert {(row["link"], row["inter_latency"]) for row in rows} == {(1, 2e-6)}
    code, out, err = cli(verb, links, *chosen)
    assert (code, "25" in out) == (0, True), err


def test_crossovers_and_needs_vary_what_rows_hold(links):
    cell = {"pe": 8, "batch": 32}
    crossed = paradl.crossovers(links, "inter_bandwidth", cell)
    assert "inter_bandwidth" not in crossed
    assert {*crossed["inter_latency"]} == {4e-6, 2e-6}
    needs = paradl.needs(links, "inter_bandwidth", {**cell, "strategy": "data"}, efficiency=0.5)
    assert needs["own"].tolist() == [12.5e9, 25e9]
    assert needs["needed"].nunique() == 2  # by latency


def test_provisions_and_regrets_of_machines(links):
    fewest = paradl.provision(links, "20 h", epochs=50)
    assert {*fewest["link"]} == {0, 1}
    losses = paradl.regret(links, over="link")
    assert losses["worst_loss"][0] == 0


def test_what_a_command_says_of_rows(links, cli):
    code, _, err = cli("limits", links, "--sel", "inter_bandwidth=13 GB/s")
    assert (code, "12.5 GB/s" in err) == (2, True)
    code, _, err = cli("limits", links, "--sel", "inter_bandwidth=13 GB/s", "--nearest")
    assert (code, "12.5 GB/s" in err) == (0, True)


@pytest.mark.parametrize("ending", ["csv", "parquet", "nc"])
def test_exports_have_the_values_of_rows(url, tmp_path, ending):
    pd = pytest.importorskip("pandas")
    path = tmp_path / f"cube.{ending}"
    paradl.export(url, path, {"group": 4, "strategy": "data"})
    if ending == "nc":
        with xr.open_dataset(path) as cube:
            assert cube.segments.values.tolist() == [8, 2]
        return
    table = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    assert {*zip(table.layout, table.segments, table.group_asked, strict=True)} == {
        (0, 8, 4),
        (2, 2, 4),
    }


@pytest.mark.parametrize("picture", ["scaling", "map", "breakdown"])
def test_pictures_take_rows(links, cli, tmp_path, picture):
    pytest.importorskip("matplotlib")
    chosen = {
        "scaling": ("--sel", "link=1", "--sel", "batch=16"),
        "map": ("--sel", "batch=16", "--over", "link"),
        "breakdown": ("--sel", "inter_latency=2 us", "--sel", "batch=16", "--sel", "strategy=data"),
    }[picture]
    code, _, err = cli("plot", picture, links, *chosen, "--output", tmp_path / "picture.png")
    assert code == 0, err


def test_a_sweep_is_resumed_and_grows_by_rows(tmp_path):
    whole, grown = tmp_path / "whole.zarr", tmp_path / "grown.zarr"
    one = {**SPEC, "axes": AXES | {"strategy": "data", "layout": LAYOUT[:2]}}
    more = {**SPEC, "axes": AXES | {"strategy": "data", "layout": LAYOUT}}
    paradl.run(one, grown)
    open_cube(str(grown), "r+").mark([0], done=False)
    paradl.run(one, grown)
    # The stored rows keep their places, wherever the spec lists them.
    reordered = {**more, "axes": more["axes"] | {"layout": [LAYOUT[2], *LAYOUT[:2]]}}
    with pytest.raises(InputError, match="extend"):
        paradl.run(reordered, grown)
    paradl.run(reordered, grown, extend=True)
    paradl.run(reordered, grown, extend=True)
    paradl.run(more, whole)
    assert arrays(grown) == arrays(whole)
    assert paradl.diff(grown, whole)["same"]
    with pytest.raises(InputError, match="layout"):
        paradl.run(one, grown, extend=True)


def test_cubes_of_other_rows_are_not_compared(url):
    other = read_grid({**SPEC, "axes": AXES | {"layout": LAYOUT[::-1]}})
    with pytest.raises(InputError, match="layout"):
        paradl.diff(url, other)


def test_damaged_values_of_rows_are_written_anew(tmp_path):
    path = tmp_path / "cube.zarr"
    paradl.run({**SPEC, "axes": SPEC["axes"] | {"strategy": "data"}}, path)
    group = zarr.open_group(path, mode="r+")["group"]
    assert isinstance(group, zarr.Array)
    group[:] = np.array([1, 1, 1])
    (damage,) = verify(str(path)).damaged
    assert damage.variable == "group"
    assert paradl.open_dataset(path).group.values.tolist() == [4, 2, 4]


def test_a_worker_has_the_rows_from_the_store(url, tmp_path):
    grid = read_grid(SPEC)
    cube = create_cube(str(tmp_path / "cube.zarr"), grid, plan_cube(grid))
    for block in range(cube.plan.blocks):
        run_block(cube.location, cube.identity, block)  # all that a worker is given
    assert arrays(cube.url) == arrays(url)


def test_summaries_alone_answer_for_many_rows(tmp_path):
    factors = {"group": [1, 2, 4, 8], "segments": {"range": [1, 32]}, "accumulate": [1, 2]}
    layout = {"product": factors, "where": "divides"}
    spec = {"axes": AXES | {"strategy": "data+pipeline", "layout": layout, "batch": 32}}
    cube = paradl.run(spec, tmp_path / "many.zarr", reduce_only=True)
    assert cube.sizes["layout"] == 4 * 6 * 2
    kept = paradl.best(str(tmp_path / "many.zarr"))
    whole = paradl.best(read_grid(spec))
    same = ["layout", "group", "segments", "accumulate", "pe"]
    assert len(kept) == 1  # one chooses among layouts
    assert kept[same].equals(whole[same])


def test_blocks_of_many_layouts_are_bounded():
    many = {"product": {"group": [2, 4], "peak_flops": {"linspace": [1e13, 1e14, 100_000]}}}
    plan = plan_cube(read_grid({"axes": AXES | {"layout": many}}))
    assert plan.shape[-1] == 200_000
    assert plan.blocks > 1
    given = {"columns": {"inter_latency": ["1 us", "2 us"]}}
    assert plan_cube(read_grid({"axes": AXES | {"layout": given}})).layered == ("pe",)


def test_no_rows_have_the_name_of_an_answers_key():
    fields = {
        name
        for answer in ANSWERS.values()
        if answer.axes != "none"
        for name in list_answer_fields(answer)
    }
    # Layouts as rows are often called so: their numbers take the place of words.
    for name in {*fields} - {*LABELS, "layout"}:
        with pytest.raises(InputError):
            read_grid({"axes": AXES | {name: [{"phi": 2}]}})


def test_samples_have_no_rows():
    drawn = {"inter_bandwidth": {"loguniform": ["1 GB/s", "100 GB/s"]}}
    with pytest.raises(InputError, match="layout"):
        paradl.sample({"axes": AXES | drawn | {"layout": LAYOUT}}, "never.zarr", rows=10)


def test_the_example_has_a_plan(cli, tmp_path):
    code, out, err = cli("sweep", EXAMPLE, tmp_path / "links.zarr", "--dry-run")
    assert (code, "3 rows of link" in out) == (0, True), err
