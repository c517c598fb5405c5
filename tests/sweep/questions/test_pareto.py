"""Fronts, against a comparison of each cell with all others."""

import json
from typing import Any

import numpy as np
import pytest
import xarray as xr
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from open_answers import list_front

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.questions.pareto import merge_fronts

Pairs = list[tuple[int, int]]
pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


def keep_front(cells: Pairs) -> Pairs:
    """The cells that no other dominates, each once."""
    return sorted(
        {
            (time, cost)
            for time, cost in cells
            if not any(t <= time and c <= cost and (t, c) != (time, cost) for t, c in cells)
        }
    )


def columns(cells: Pairs) -> dict[str, Any]:
    return {
        "time": np.array([time for time, _ in cells], float),
        "cost": np.array([cost for _, cost in cells], float),
        "at": np.arange(len(cells)),
    }


@limit_examples(100)
@given(first=pairs, second=pairs)
def test_a_front_is_what_nothing_dominates(first: Pairs, second: Pairs) -> None:
    merged = merge_fronts(merge_fronts(None, columns(first)), columns(second))
    front = list(zip(merged["time"].tolist(), merged["cost"].tolist(), strict=True))
    assert front == keep_front([*first, *second])


@pytest.mark.parametrize(
    ("against", "objective"),
    [
        *((against, "epoch_time") for against in ("pe-hours", "cost", "memory", "pe")),
        ("memory", "pe_hours"),
        ("pe", "pe_hours"),
    ],
)
def test_each_bandwidth_of_a_cube_has_a_front(
    against: Any, objective: Any, mixed_url: str, mixed: xr.Dataset
) -> None:
    options = {
        "against": against,
        "objective": objective,
        "price": {"abci": 2.5} if against == "cost" else None,
    }
    rows = list_front(mixed_url, {"model": "alexnet"}, **options)
    assert rows == list_front(mixed.sel(model="alexnet"), **options)
    bandwidths = mixed["inter_bandwidth"].values.tolist()
    assert len(bandwidths) == 2
    assert [row["inter_bandwidth"] for row in rows] == sorted(
        row["inter_bandwidth"] for row in rows
    )
    for bandwidth in bandwidths:
        cells = mixed.sel(
            model="alexnet", dataset="imagenet-226", system="abci", inter_bandwidth=bandwidth
        )
        front = [row for row in rows if row["inter_bandwidth"] == bandwidth]
        expect_front(front, cells, against, objective)


def expect_front(
    rows: list[dict[str, Any]], cells: xr.Dataset, against: str, objective: str
) -> None:
    """The rows are those cells that no other of these dominates."""
    time = cells.paradl.epoch_time.where(cells.paradl.feasible)
    hours = time.astype(float) * cells["pe"] / 3600
    cost = {
        "pe-hours": hours,
        "cost": hours * 2.5,
        "memory": cells["memory"],
        "pe": cells["pe"].astype(float),
    }[against]
    time = time if objective == "epoch_time" else hours
    name = against.replace("-", "_")
    known = time.notnull().values.reshape(-1)
    every = list(
        zip(
            time.values.reshape(-1)[known].tolist(),
            cost.broadcast_like(time).transpose(*time.dims).values.reshape(-1)[known].tolist(),
            strict=True,
        )
    )
    expected = keep_front(every)
    assert len(expected) > 1 or (objective, against) == ("pe_hours", "pe")
    assert [row[objective] for row in rows] == [time for time, _ in expected]
    np.testing.assert_allclose([row[name] for row in rows], [c for _, c in expected], rtol=1e-6)
    for row in rows:
        at = {dim: row[dim] for dim in time.dims}
        assert float(time.sel({str(dim): value for dim, value in at.items()})) == row[objective]


def test_the_time_to_the_target(mixed_url: str) -> None:
    rows = list_front(mixed_url, {"model": "alexnet"}, objective="train_time")
    assert rows[0]["train_time"] < rows[-1]["train_time"]
    assert rows[0]["pe_hours"] == pytest.approx(rows[0]["train_time"] * rows[0]["pe"] / 3600)


def test_the_time_to_the_target_need_not_be_stored(mixed: xr.Dataset, cli: Any) -> None:
    options: dict[str, Any] = {"objective": "train_time", "against": "memory"}
    stored = list_front(mixed, **options)
    assert stored
    bare = list_front(mixed.drop_vars(["train_time", "epochs"]), **options)
    for row, expected in zip(bare, stored, strict=True):
        assert row["train_time"] == pytest.approx(expected["train_time"], rel=1e-6)
        assert row | {"train_time": 0} == expected | {"train_time": 0}
    space = ("--model", "resnet50", "--dataset", "imagenet", "--system", "abci")
    cells = ("--strategy", "data", "--pe", "8,64", "--batch", "32")
    asked = ("--convergence", "auto", "--objective", "train-time", "--format", "json")
    code, out, _ = cli("pareto", *space, *cells, *asked)
    assert code == 0
    times = {row["pe"]: row["train_time"] for row in json.loads(out)}
    settings = {"convergence": "auto"}
    for pe, time in times.items():
        answer = paradl.predict(
            "resnet50", "data", pe, 32, dataset="imagenet", system="abci", settings=settings
        )
        assert time == pytest.approx(answer["train_time"], rel=1e-6)
    assert times.keys() == {8, 64}


BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"against": "money"},
        "^against: unknown quantity 'money'; known: cost, memory, pe, pe-hours$",
    ),
    ({"against": "cost"}, "^price: "),
    ({"price": 1}, "^price: "),
    ({"against": "cost", "price": {"dgx": 1}}, "^price: .*abci"),
    ({"against": "cost", "price": -1}, "^price: .*-1"),
    ({"objective": "trane"}, "^objective: .*trane.*known: epoch_time, pe_hours, train_time"),
    ({"objective": "pe-hours", "against": "pe_hours"}, "^against: PE-hours are the objective"),
    ({"objective": "pe_hours"}, "^against: "),
]


@pytest.mark.parametrize("goals", [("pe-hours", "memory"), ("epoch-time", "pe_hours")])
def test_words_of_a_choice_are_joined_by_dashes_or_underscores(
    goals: tuple[str, str], mixed_url: str
) -> None:
    names = [name.replace("-", "_") for name in goals]
    rows = list_front(mixed_url, {"model": "alexnet"}, objective=goals[0], against=goals[1])
    shown = [name for name in rows[0] if name != "fits"]
    assert shown[-2:] == names


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_input(options: dict[str, Any], message: str, mixed_url: str) -> None:
    with pytest.raises(InputError, match=message):
        list_front(mixed_url, **options)


def test_the_command(mixed_url: str, cli: Any) -> None:
    code, out, _ = cli(
        "pareto", mixed_url, "--against", "cost", "--price", "2.5", "--format", "csv"
    )
    assert code == 0
    assert out.startswith(
        "model,dataset,system,strategy,pe,batch,inter_bandwidth,epoch_time,cost,fits\n"
    )
    by_name = cli(
        "pareto", mixed_url, "--against", "cost", "--price", "abci=2.5", "--format", "csv"
    )
    assert by_name[1] == out
    nothing = ("--sel", "strategy=serial", "--sel", "pe=12")
    for verb in ("pareto", "sensitivity"):
        code, out, message = cli(verb, mixed_url, *nothing)
        assert (code, out) == (4, "")
        assert "nothing in this slice is feasible: too_many_pes" in message
