"""Sweeps of layouts: cells of a store are predictions, whatever computes them."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from open_answers import list_limits, list_sensitivities, rank_strategies

from paradl.grids.design_space import make_product
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import validate_spec
from paradl.kernels.names.layout_terms import LAYOUT_FORMULAS, LAYOUT_TERMS
from paradl.kernels.names.stored import name_elasticity
from paradl.sweep.answers.numbers import read_range
from paradl.sweep.cells.memory_cube import compute_cells
from paradl.sweep.cli.main import main
from paradl.sweep.engine import evaluation
from paradl.sweep.engine.run import open_dataset, run
from paradl.sweep.questions.bottleneck import list_bottlenecks
from paradl.sweep.questions.predict import predict

LATEST = str(LAYOUT_FORMULAS)
SYSTEM = "dgx-h100:precision=bf16"
STRATEGY = "data+tensor+pipeline"
LAYOUT = {
    "product": {
        "tensor": [1, 8, 3],
        "pipeline": [1, 2],
        "chunks": [1, 2],
        "micro": [1, 2],
        "recompute": ["none", "blocks"],
        "sequence": ["off", "on"],
        "zero": [0, 1],
    },
    "where": "divides",
}


SPEC: dict[str, Any] = {
    "axes": {
        "model": "llama2_7b",
        "dataset": "pile",
        "system": SYSTEM,
        "strategy": [STRATEGY, "data+filter:group=8"],
        "pe": [16, 32],
        "batch": [64, 128],
        "layout": LAYOUT,
    },
    "scaling": "strong",
}


def make_grid(spec=SPEC):
    return Grid.from_spec(validate_spec(spec, ""))


def make_store(tmp_path_factory, spec):
    url = str(tmp_path_factory.mktemp("layouts") / "cube.zarr")
    run(spec, url)
    return url


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory, SPEC)


def test_rows_that_divide_no_pe_count_are_left_out(store):
    del store
    (rows,) = make_grid().rows.values()
    assert {*rows.columns["tensor"]} == {1, 8}
    assert len(rows) == 2 * 2**6


def test_cells_are_predictions(store):
    cells: Any = zarr.open_group(store, mode="r")
    grid = make_grid()
    (rows,) = grid.rows.values()
    generator = np.random.default_rng(0)
    for row in generator.choice(len(rows), 6, replace=False):
        values = {name: column[row] for name, column in rows.columns.items()}
        answer = predict(
            "llama2_7b",
            STRATEGY,
            32,
            128,
            system=SYSTEM,
            dataset="pile",
            parameters=values,
            settings={"scaling": "strong"},
        )
        at = (0, 0, 0, 0, 1, 1, row)
        for name in ("comp_time", "comm_time", "memory"):
            expected = np.nan if answer[name] is None else answer[name]
            assert cells[name][at] == pytest.approx(expected, rel=1e-7, nan_ok=True), values


SLOPED = ("intra_bandwidth", "inter_latency", "peak_flops", "memory_bandwidth")
OUTPUTS = [
    *("comp_time", "comm_time", "memory", "limit", *LAYOUT_TERMS),
    *(name_elasticity("epoch_time", name) for name in (*SLOPED, "memory_capacity")),
    *(name_elasticity("memory", name) for name in ("reserved", "peak_flops")),
]
FEW: dict[str, Any] = SPEC | {"outputs": OUTPUTS}
FEW["axes"] = SPEC["axes"] | {
    "strategy": STRATEGY,
    "pe": [16, 32],
    "batch": [64],
    "intra_bandwidth": ["450 GB/s", "90 GB/s"],
    "layout": {"product": {"tensor": [1, 8], "pipeline": [2], "micro": [1, 2], "zero": [1]}},
}


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return make_store(tmp_path_factory, FEW)


def test_terms_and_elasticities_are_those_of_questions(few):
    cube = open_dataset(few).load()
    for bandwidth, row in ((0, 0), (0, 3), (1, 1), (1, 2)):
        cell = cube.isel(pe=1, intra_bandwidth=bandwidth, layout=row).squeeze()
        chosen = {"intra_bandwidth": cube["intra_bandwidth"].values[bandwidth].item()}
        layout = {name: cell[name].item() for name in ("tensor", "micro")}
        settings = {"scaling": "strong"}
        answer = predict(
            *("llama2_7b", STRATEGY, 32, 64),
            system=SYSTEM,
            dataset="pile",
            parameters={**chosen, **layout, "pipeline": 2, "zero": 1},
            settings=settings,
        )
        for name in LAYOUT_TERMS:
            assert cell[name].item() == np.float32(answer["terms"].get(name, 0.0)), name
        slopes = {
            slope["parameter"]: slope["elasticity"]
            for slope in list_sensitivities(cube, {"pe": 32, **chosen, **layout})
        }
        for name in SLOPED:
            expected = slopes.get(name, 0.0)
            assert cell.paradl.elasticity(name).item() == pytest.approx(expected, abs=1e-7)
        assert cell.paradl.elasticity("memory_capacity").item() == 0
        share = 1e9 / answer["memory"]
        assert cell.paradl.elasticity("reserved", "memory").item() == pytest.approx(share)
        assert cell.paradl.elasticity("peak_flops", "memory").item() == 0
        largest = max(answer["terms"], key=answer["terms"].__getitem__)
        meanings = cell.paradl.bottleneck.attrs["flag_meanings"].split()
        assert meanings[cell.paradl.bottleneck.item()] == largest


def test_programs_fill_the_same_cube_as_numpy(few, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "FEW_CELLS", 0)
    url = str(tmp_path / "cube.zarr")
    xr.testing.assert_equal(run(FEW, url).load(), open_dataset(few).load())
    stores: Any = [zarr.open_group(place, mode="r") for place in (few, url)]
    np.testing.assert_array_equal(*(store["summary/statistics"][:] for store in stores))


def test_stores_of_layouts_answer_questions_about_terms(few):
    cube = open_dataset(few).load()
    chosen = {"tensor": 8, "micro": 1, "intra_bandwidth": 450e9, "pe": 32}
    (row,) = list_bottlenecks(few, chosen)
    cell = cube.sel(pe=32, intra_bandwidth=450e9).isel(layout=[2]).squeeze()
    assert (cell["tensor"].item(), cell["micro"].item()) == (8, 1)
    for name, share in row["shares"].items():
        assert share == pytest.approx(cell[name].item() / cell.paradl.epoch_time.item(), rel=1e-6)


def test_best_selects_by_columns_and_words(store):
    chosen = {"strategy": STRATEGY, "tensor": 8, "recompute": "blocks"}
    (row,) = rank_strategies(store, chosen)
    assert row["tensor"] == 8
    assert row["recompute"] == make_grid().parameters["recompute"].read("blocks")
    (fastest,) = rank_strategies(store, {"strategy": STRATEGY})
    assert fastest["epoch_time"] <= row["epoch_time"]
    assert fastest["feasible"]


def test_summaries_alone_name_the_same_best(store, tmp_path):
    url = str(tmp_path / "lines.zarr")
    run(SPEC | {"outputs": []}, url)
    chosen = {"strategy": STRATEGY}
    names = ("pe", "batch", "layout", "epoch_time")
    (first,), (second,) = (rank_strategies(place, chosen) for place in (store, url))
    assert [first[name] for name in names] == [second[name] for name in names]


def test_limits_of_rows(store):
    chosen = {"strategy": STRATEGY, "batch": 128}
    rows = list_limits(store, selection=chosen, every_layout=True)
    assert len(rows) == 2 * 2**6
    # Chunks need stages.
    bad = [row for row in rows if row["chunks"] == 2 and row["pipeline"] == 1]
    assert bad
    assert all(row["largest_pe"] is None for row in bad)


@pytest.mark.parametrize(
    ("column", "values"), [("chunks", [1, 2]), ("shard", [0, 8]), ("zero", [0, 1])]
)
def test_one_pe_has_no_column_of_a_row(column, values):
    """Speedups divide by one PE at its fastest micro-batch, whatever divides more of them."""
    columns = {"tensor": [2], "pipeline": [2], "micro": [1], "zero": [1], column: values}
    axes = FEW["axes"] | {"pe": [32, 64], "layout": {"product": columns}}
    grid = make_grid(SPEC | {"axes": axes})
    cells = compute_cells(grid)
    (serial,) = {*cells["serial_time"].sel(intra_bandwidth=450e9).values.ravel()}
    one = predict("llama2_7b", "data:micro=best", 1, 64, system=SYSTEM, dataset="pile")
    assert serial == pytest.approx(one["epoch_time"])
    assert (cells.paradl.efficiency > 0.3).all()
    assert {row["efficient_pe"] for row in list_limits(cells, 0.3, every_layout=True)} == {64}


def test_bottlenecks_are_those_of_the_fastest_rows(store):
    selection = {"strategy": STRATEGY, "batch": 128}
    rows = list_bottlenecks(store, selection)
    best = {(row["pe"], row["layout"]) for row in rows if row["feasible"]}
    for pe in (16, 32):
        first = rank_strategies(store, selection | {"pe": pe})[0]
        assert (pe, first["layout"]) in best
    # Draws of parameters move terms apart.
    ends = [read_range(row, "share") for row in rows]
    assert all(low is not None and high is not None and low < high for low, high in ends)


def test_of_many_limits_a_strategy_has_its_furthest(store, monkeypatch, capsys):
    assert list_limits(store, every_layout=True)[0]["largest_pe"] is None
    expected = next(row for row in list_limits(store) if row["strategy"] == STRATEGY)
    monkeypatch.setattr("sys.argv", ["paradl", "limits", str(store)])
    with pytest.raises(SystemExit, match="0"):
        main()
    lines = capsys.readouterr().out.splitlines()
    (row,) = (line for line in lines if expected["layout"] in line)
    assert "end of the axis" in row


def test_rows_that_nothing_divides_are_refused():
    rows = {"product": {"tensor": [3, 5]}, "where": "divides"}
    axes = {
        "model": "llama2_7b",
        "dataset": "pile",
        "system": SYSTEM,
        "strategy": "data+tensor",
        "pe": [16],
        "batch": [64],
        "layout": rows,
    }
    with pytest.raises(InputError, match="no row is left"):
        make_grid({"axes": axes})


@pytest.mark.parametrize(
    ("strategy", "parameters", "settings"),
    [
        ("data+tensor:tensor=2,zero=0", {"zero": 3}, {}),
        ("data:zero=0", {"zero": 3}, {}),
        ("data:recompute=none", {}, {"recompute": "full"}),
        ("data+pipeline:pipeline=2,recompute=none", {}, {}),
        ("data+pipeline:chunks=1", {"pipeline": 2}, {}),
    ],
)
def test_a_stated_default_counts_in_a_sweep(tmp_path, strategy, parameters, settings):
    space: dict[str, Any] = {"model": "llama2_7b", "dataset": "pile", "system": "dgx-h100", "pe": 8}
    spec = {
        "axes": {**space, "batch": 4, "strategy": strategy},
        "parameters": parameters,
        **settings,
    }
    swept = run(spec, tmp_path / "cube.zarr").squeeze()
    one = predict(**space, batch=4, strategy=strategy, parameters=parameters, settings=settings)
    assert float(swept.memory) == np.float32(one["memory"])
    assert float(swept.comp_time) == np.float32(one["comp_time"])


def test_a_stated_stage_of_zero_is_no_parameter():
    space: dict[str, Any] = {"model": "llama2_7b", "dataset": "pile", "system": "dgx-h100", "pe": 8}
    whole = predict(**space, batch=4, strategy="data")
    stated = predict(**space, batch=4, strategy="data:zero=0", parameters={"zero": 3})
    assert stated["memory"] == whole["memory"]


@pytest.mark.parametrize("most", [1, 50])
def test_parts_of_any_size_choose_the_same(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several cells in a part, and of several parts of a cell's candidates."""
    chosen = {
        "model": "llama2_7b",
        "dataset": "pile:length=1024",
        "system": SYSTEM,
        "strategy": [
            "data+tensor+pipeline:tensor=best,pipeline=best,micro=best",
            "data+tensor:tensor=2",
        ],
        "pe": [2, 12],
        "batch": [4, 5],
    }
    spec = make_product(chosen, {}, {})
    whole = compute_cells(spec)
    monkeypatch.setattr("paradl.grids.inputs.layouts.MOST", most)
    xr.testing.assert_identical(compute_cells(spec).load(), whole.load())


@pytest.mark.parametrize(("layouts", "told"), [(LATEST, 0), ("3", 1), (None, 1)])
def test_stores_of_earlier_formulas_are_read_and_told(
    store, tmp_path, layouts, told, monkeypatch, capsys
):
    copy = tmp_path / "earlier.zarr"
    shutil.copytree(store, copy)
    root = copy / "zarr.json"
    document = json.loads(root.read_text())
    versions = json.loads(document["attributes"]["paradl_versions"])
    assert versions.pop("layouts") == LATEST
    versions |= {} if layouts is None else {"layouts": layouts}
    document["attributes"]["paradl_versions"] = json.dumps(versions)
    root.write_text(json.dumps(document))
    words = ["best", str(copy), "--sel", "batch=64", "--sel", "tensor=8", "--format", "json"]
    monkeypatch.setattr("sys.argv", ["paradl", *words, "--sel", f"strategy={STRATEGY}"])
    with pytest.raises(SystemExit, match="0"):
        main()
    shown = capsys.readouterr()
    (row, *_) = json.loads(shown.out)
    assert row["epoch_time"] > 0
    assert (row["epoch_time_p10"] is None) == bool(told)
    assert shown.err.count("warning: layouts of this store") == told
