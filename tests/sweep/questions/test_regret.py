"""Regrets, against xarray's minima over the cells."""

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
import xarray as xr
from open_answers import rank_regrets

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.questions.regret import rank_losses
from paradl.sweep.text.ranking import describe_regret
from paradl.sweep.text.tables import show_rows

AXES: dict[str, Any] = {
    "model": "resnet50",
    "dataset": "imagenet",
    "system": ["abci", "dgx-a100"],
    "strategy": ["serial", "data", "data+filter"],
    "pe": [4, 8, 16],
    "batch": [8, 64],
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("regret")
    axes = {**AXES, "inter_bandwidth": ["0.1 GB/s", "25 GB/s"]}
    paradl.run({"oracle": "paper", "axes": axes}, folder / "cube.zarr")
    return str(folder / "cube.zarr")


def find_losses(cube: xr.Dataset, over: str) -> xr.DataArray:
    """The loss of each strategy in each scenario, infinite where it is not feasible."""
    time = cube.paradl.epoch_time.where(cube.paradl.feasible).fillna(np.inf)
    kept = {"model", "dataset", "system", "strategy", "inter_bandwidth", over}
    least = time.min([dim for dim in time.dims if dim not in kept])
    return least / least.min("strategy") - 1


@pytest.mark.parametrize("over", ["system", "inter_bandwidth", "batch"])
def test_losses_are_those_of_the_cells(over: str, url: str) -> None:
    cube = paradl.open_dataset(url).load()
    losses = find_losses(cube, over)
    rows = rank_regrets(url, over=over)
    assert rows == rank_regrets(cube, over=over)
    assert len(rows) == losses.size // losses.sizes[over]
    for row in rows:
        own = losses.sel({dim: row[str(dim)] for dim in losses.dims if dim != over})
        if np.isinf(own).any():
            assert row["rank"] is row["worst_loss"] is row["mean_loss"] is None
            assert row["infeasible_at"] == own[over].values[np.isinf(own.values)].tolist()
        else:
            assert row["worst_loss"] == pytest.approx(float(own.max()), rel=1e-5)
            assert row["mean_loss"] == pytest.approx(float(own.mean()), rel=1e-5)
            if row["worst_loss"]:
                worst = float(own.sel({over: row["worst_at"]}))  # of several the first, perhaps
                assert worst == pytest.approx(float(own.max()), rel=1e-5)
    assert [row["strategy"] for row in rows if row["strategy"] == "serial" and row["rank"]] == []


def test_the_least_loss_need_not_be_of_a_winner() -> None:
    times = np.array([[1.0, 9.0], [9.0, 1.0], [2.0, 2.0], [1.5, np.inf]])
    rows = rank_losses({}, np.array(list("abcd"), object), np.array(["x", "y"], object), times)
    assert [row["strategy"] for row in rows] == ["c", "a", "b", "d"]
    assert rows[0] == {
        "rank": 1,
        "strategy": "c",
        "worst_loss": 1.0,
        "worst_at": "x",
        "mean_loss": 1.0,
        "infeasible_at": [],
    }
    assert rows[1]["worst_at"] == "y"
    assert (rows[3]["rank"], rows[3]["infeasible_at"]) == (None, ["y"])


def test_tables_shorten_what_data_lists(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {"rank": None, "model": "a", "strategy": "b", "worst_loss": None, "worst_at": None},
        {"rank": 1, "model": "a", "strategy": "c", "worst_loss": 0.5, "worst_at": 2.5e10},
    ]
    bandwidths = [1e9 * (n + 1) for n in range(256)]
    whole = [
        row | {"mean_loss": None, "infeasible_at": values}
        for row, values in zip(rows, [bandwidths, []], strict=True)
    ]
    show_rows(whole, "table", describe=partial(describe_regret, "inter_bandwidth"))
    table = capsys.readouterr().out
    assert "256 values, 1 GB/s to 256 GB/s" in table
    assert "25 GB/s" in table
    show_rows(whole, "json")
    assert json.loads(capsys.readouterr().out)[0]["infeasible_at"] == bandwidths


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("strategy", "^over: .*'strategy'"),
        ("pe", "^over: .*'pe'"),
        ("sistem", "^over: .*'system'"),
    ],
)
def test_bad_axes(over: str, message: str, url: str) -> None:
    with pytest.raises(InputError, match=message):
        rank_regrets(url, over=over)


def test_the_command(url: str, cli: Any) -> None:
    code, out, _ = cli("best", url, "--worst-case", "system", "--format", "csv")
    assert (code, out.splitlines()[0]) == (
        0,
        "rank,model,dataset,inter_bandwidth,strategy,worst_loss,worst_at,worst_precision,"
        "worst_software,mean_loss,infeasible_at",
    )
    code, _, message = cli("best", url, "--worst-case", "system", "--sel", "strategy=serial")
    assert code == 2
    assert "strategy: a worst case compares two strategies or more, got one" in message
    two = ("--strategy", "serial,pipeline:segments=2", "--pe", 64, "--batch", 8)  # too many PEs
    systems = ("--system", "abci,dgx-a100", "--worst-case", "system", "--quiet")
    code, _, message = cli("best", "--model", "alexnet", "--dataset", "imagenet", *systems, *two)
    assert code == 4, message
    assert message.startswith("paradl: no strategy is feasible throughout")
