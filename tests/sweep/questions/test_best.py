import json
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pandas as pd
import pytest

import paradl
from paradl.kernels.names.flags import FORBIDS
from paradl.sweep.cube import store
from paradl.sweep.cube.store import open_cube
from paradl.sweep.plots.scaling import describe_scaling
from paradl.sweep.plots.stacks import describe_breakdown, describe_memory


def test_against_brute_force(mixed):
    rows = paradl.best(mixed).to_dict("records")
    assert len(rows) == 24
    given = ("model", "dataset", "system", "strategy", "inter_bandwidth")
    for row in rows:
        cells = mixed.sel({key: row[key] for key in given})
        time = (cells.comp_time.astype(float) + cells.comm_time.astype(float)).values
        allowed = np.where((cells.limit.values & FORBIDS) == 0, time, np.inf)
        assert row["feasible"] == np.isfinite(allowed).any()
        if row["feasible"]:
            assert row["epoch_time"] == pytest.approx(allowed.min(), rel=1e-6)
            cell = cells.sel({axis: row[axis] for axis in ("pe", "batch")})
            time = float(cell.comp_time) + float(cell.comm_time)
            assert row["epoch_time"] == pytest.approx(time, rel=1e-6)
            assert row["comp_time"] + row["comm_time"] == pytest.approx(time, rel=1e-6)
            assert row["memory"] == float(cell.memory)
            assert row["limit"] == []


def test_the_fastest_comes_first(mixed):
    rows = paradl.best(mixed)
    for _, place in rows.groupby(["model", "dataset", "inter_bandwidth"]):
        allowed = place[place["feasible"].astype(bool)]
        assert allowed["epoch_time"].is_monotonic_increasing
        assert allowed["rank"].tolist() == list(range(1, len(allowed) + 1))
        assert place["feasible"].tolist() == sorted(place["feasible"], reverse=True)


def test_losers_say_what_forbids_them(mixed):
    chosen = {"pe": 12, "model": "alexnet", "inter_bandwidth": "1 GB/s"}
    rows = paradl.best(mixed, chosen).set_index("strategy")
    serial = rows.loc["serial"]
    assert serial["rank"] is None
    assert serial["limit"] == ["too_many_pes"]
    assert serial["pe"] is None
    assert rows.loc["data", "pe"] == 12


def test_nothing_feasible(mixed):
    rows = paradl.best(mixed, {"strategy": "serial", "pe": 12})
    assert not rows["feasible"].any()


def test_nothing_that_can_exist(mixed):
    assert len(paradl.best(mixed, {"model": "alexnet", "dataset": "cosmoflow-128"})) == 0


def test_a_store_is_opened_once(small_url, monkeypatch, cli):
    opened = Mock(side_effect=open_cube)
    monkeypatch.setattr(store, "open_cube", opened)
    assert len(paradl.best(small_url))
    assert cli("best", small_url, "--model", "alexnet")[0] == 0
    assert opened.call_args_list == [call(small_url)] * 2


def test_pe_hours_and_cost_against_brute_force(mixed):
    alone = mixed.sel(model="alexnet", dataset="imagenet-226", inter_bandwidth=1e9)
    rows = paradl.best(alone, objective="cost", price=2.0).to_dict("records")
    for row in rows:
        cells = alone.sel(strategy=row["strategy"])
        # A law of epochs is known: what is paid for is the way to the target.
        time = (cells.comp_time.astype(float) + cells.comm_time.astype(float)) * cells.epochs
        hours = (time * cells.pe / 3600).where((cells.limit & FORBIDS) == 0)
        assert row["pe_hours"] == pytest.approx(float(hours.min()), rel=1e-6)
        assert row["cost"] == pytest.approx(2 * row["pe_hours"])
    assert [row["cost"] for row in rows] == sorted(row["cost"] for row in rows)


def test_losers_of_a_store_are_explained_on_request(mixed_url):
    selection = {"pe": 12, "model": "alexnet", "strategy": "serial", "inter_bandwidth": 1e9}
    assert paradl.best(mixed_url, selection)["rejection"].tolist() == [None]
    (rejection,) = paradl.best(mixed_url, selection, why=True)["rejection"]
    assert rejection["limit"] == ["too_many_pes"]
    assert rejection["changes"] == {"pe": 1}


def test_degrees_add_up(mixed):
    for row in paradl.best(mixed, {"pe": 8, "model": "alexnet"}).to_dict("records"):
        if row["feasible"]:
            assert row["replicas"] * row["group_size"] == row["pe"]
            assert row["global_batch"] == row["replicas"] * row["batch"]
            assert (row["segment_count"] == 8) == (row["strategy"] == "pipeline:segments=8")


def test_the_largest_global_batch_bounds_a_store(mixed):
    rows = paradl.best(mixed, {"model": "alexnet"}, max_global_batch=64).to_dict("records")
    assert all(row["global_batch"] <= 64 for row in rows if row["feasible"])
    data = next(row for row in rows if row["strategy"] == "data")
    assert data["pe"] * data["batch"] <= 64


def test_the_largest_global_batch_bounds_a_store_of_layouts(tmp_path):
    axes = {
        "model": "llama2_7b",
        "dataset": "pile",
        "system": "dgx-h100",
        "strategy": "data+tensor:tensor=4,zero=1",
        "pe": 8,
        "batch": [2, 4, 8],
    }
    paradl.run({"axes": axes}, tmp_path / "cube.zarr")
    (row,) = paradl.best(tmp_path / "cube.zarr", max_global_batch=8).to_dict("records")
    assert (row["batch"], row["global_batch"]) == (4, 8)


def test_a_store_answers_as_its_cells_do_for_each_bandwidth(mixed, mixed_url):
    rows = paradl.best(mixed_url).to_dict("records")
    cells = paradl.best(mixed).to_dict("records")
    for row, cell in zip(rows, cells, strict=True):
        names = ("rank", "model", "strategy", "inter_bandwidth", "pe", "batch", "limit")
        assert [row[name] for name in names] == [cell[name] for name in names]
        assert row["epoch_time"] == pytest.approx(cell["epoch_time"], rel=1e-6)


def test_memory_behind_a_system_decides_what_fits(cli):
    systems = ["dgx-h100", "dgx-h100:memory=2GB,precision=bf16", "abci"]
    cells = paradl.compute_space(
        "alexnet", dataset="imagenet", system=systems, pe=8, batch=1024, strategy="data"
    )
    rows = paradl.best(cells).to_dict("records")
    small = "dgx-h100:precision=bf16,memory=2 GB"
    assert [row["system"] for row in rows] == ["dgx-h100", small, "abci"]
    assert [row["batch"] for row in rows] == [1024, None, 1024]
    assert rows[1]["rejection"]["memory"] > rows[1]["rejection"]["memory_capacity"] == 2e9
    code, out, err = cli(
        *("best", "--model", "alexnet", "--dataset", "imagenet", "--system", ",".join(systems)),
        *("--pe", 8, "--batch", 1024, "--strategy", "data", "--format", "json"),
    )
    assert code == 0, err
    assert [row["system"] for row in json.loads(out)] == ["dgx-h100", small, "abci"]


def test_each_memory_has_a_ranking_and_losers_of_its_own():
    cells = paradl.compute_space(
        "alexnet",
        dataset="imagenet",
        system="abci",
        pe=8,
        batch=[16, 4096],
        strategy="data",
        parameters={"memory_capacity": ["100 MB", "16 GB", "80 GB"]},
        settings={"oracle": "paper"},
    )
    least, own, most = paradl.best(cells).to_dict("records")
    assert [row["memory_capacity"] for row in (least, own, most)] == [1e8, 16e9, 80e9]
    assert [row["batch"] for row in (least, own, most)] == [None, 16, 4096]
    assert least["rejection"]["memory_capacity"] == 1e8


def test_strategies_on_one_row_of_an_axis_named_layout_have_ranks_of_their_own(tmp_path):
    axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "pe": 64, "batch": 32}
    rows = [{"group": 2, "segments": 4}, {"group": 4, "segments": 8}]
    spec = {"axes": axes | {"strategy": ["data+filter", "data+pipeline"], "layout": rows}}
    ds = paradl.run(spec, str(tmp_path / "cube.zarr"))
    for layout in range(len(rows)):
        ranked = paradl.best(ds, {"layout": layout})
        assert ranked["rank"].tolist() == [1, 2]
        assert 0.5 <= ranked["faster_than_next"][0] <= 1


@pytest.mark.parametrize(("places", "computed"), [(3, True), (1001, False)])
def test_chances_of_few_rows_are_computed_and_of_many_left_out(places, computed):
    """Those of a thousand take 30 s, which no answer from a summary may."""
    cells = paradl.predict(
        *("alexnet", "data", 8, 32),
        dataset="imagenet-226",
        system="abci",
        parameters={"inter_bandwidth": np.linspace(1e9, 2e9, places).tolist()},
    )
    rows = paradl.best(cells)
    assert len(rows) == places
    assert rows["epoch_time"].notna().all()
    for name in ("epoch_time_p10", "epoch_time_p90"):
        assert rows[name].notna().all() == computed
        assert rows[name].notna().any() == computed


def test_systems_compete():
    cells = paradl.compute_space(
        "alexnet",
        dataset="imagenet",
        pe=8,
        batch=32,
        system="abci,dgx-a100",
        strategy="data,filter",
        settings={"oracle": "paper"},
    )
    rows = paradl.best(cells, across=True)
    assert rows["rank"].tolist() == [1, 2, 3, 4]
    assert rows["epoch_time"].is_monotonic_increasing
    assert paradl.best(cells)["rank"].tolist() == [1, 2, 1, 2]
    assert cells.precision.values.tolist() == ["fp32", "amp"]
    settings = {"abci": ("fp32", "plain"), "dgx-a100": ("amp", "ddp")}
    for answer in (rows, paradl.limits(cells), paradl.pareto(cells), paradl.bottleneck(cells)):
        for row in pd.DataFrame(answer).to_dict("records"):
            assert (row["precision"], row["software"]) == settings[row["system"]]
    lost = [loser for _, loser in paradl.regret(cells).iterrows() if loser["worst_at"]]
    for value in lost:
        assert (value["worst_precision"], value["worst_software"]) == settings[
            str(value["worst_at"])
        ]
    assert lost
    assert "precision" not in paradl.best(cells, {"system": "abci"})


def test_a_cost_needs_a_price(mixed):
    with pytest.raises(paradl.InputError, match=r"^price: a cost needs"):
        paradl.best(mixed, objective="cost")
    with pytest.raises(paradl.InputError, match=r"^price: .*abci"):
        paradl.best(mixed, objective="cost", price={"dgx-a100": 2.0})
    with pytest.raises(paradl.InputError, match=r"^price: .*-1"):
        paradl.best(mixed, objective="cost", price=-1)


def test_the_price_of_a_machine_misnamed_and_with_settings():
    space: dict[str, Any] = {"dataset": "imagenet", "pe": 8, "batch": 32, "strategy": "data"}
    cells = paradl.compute_space("alexnet", system="dgx-h100", precision="bf16", **space)
    with pytest.raises(paradl.InputError, match="write dgx-h100=2 in place of dgx-h10=2"):
        paradl.best(cells, objective="cost", price={"dgx-h10": 2.0})
    with pytest.raises(paradl.InputError, match=r"add dgx-h100=2\.5"):
        paradl.best(cells, objective="cost", price={"dgx-a100": 2.0})
    costs = [paradl.best(cells, price=price)["cost"][0] for price in (2.0, {"dgx-h100": 2.0})]
    assert costs[0] == costs[1]


@pytest.mark.parametrize("oracle", ["paper", "machine"])
def test_an_epoch_is_at_least_one_iteration(oracle):
    """Of 50,000 samples: 1,024 PEs of 300 take more, and compute all of them in one step."""
    cells = paradl.compute_space(
        "resnet50",
        dataset="cifar10",
        system="abci",
        strategy="data",
        pe=[1, 1024],
        batch=300,
        settings={"oracle": oracle},
    )
    assert cells.paradl.iterations.sel(pe=1024).item() == 1
    (row,) = paradl.best(cells, {"pe": 1024}).to_dict("records")
    assert (row["feasible"], row["limit"]) == (True, ["batch_exceeds_dataset"])
    one = paradl.best(cells, {"pe": 1}).to_dict("records")[0]
    assert one["limit"] == []
    (line,) = paradl.limits(cells).to_dict("records")
    assert (line["fastest_pe"], line["marks"]) == (1024, ["batch_exceeds_dataset"])
    assert "marks" not in paradl.limits(cells, selection={"pe": 1})
    (curve,) = describe_scaling(cells).curves
    assert curve.beyond.tolist() == [False, True]
    beyond = "global batch larger than the data set"
    assert f"{beyond}: p = 1,024" in describe_memory(cells).notes
    assert f"{beyond} from 1,024" in describe_breakdown(cells).notes
    # By data parallelism a PE computes as long for its own 300 samples, wherever they count.
    alone = one["comp_time"] / (50_000 / 300)
    assert row["comp_time"] == pytest.approx(alone, rel=1e-6)
