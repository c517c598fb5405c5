"""Bars add up to the memory in the cube."""

from typing import Any

import numpy as np
import pytest

import sweep
from grids.reading.errors import InputError
from sweep.errors import NothingFeasibleError
from sweep.questions.pictures.memory import MOST_BARS, _spread_positions, describe_memory

ALEXNET: dict[str, Any] = {"model": "alexnet", "inter_bandwidth": "1 GB/s", "batch": 8}


def test_bars_of_strategies_add_up(mixed):
    memory = describe_memory(mixed, ALEXNET | {"pe": 4})
    assert memory.by == "strategy"
    cells = mixed.sel(
        model="alexnet", dataset="imagenet-226", system="abci", batch=8, inter_bandwidth=1e9, pe=4
    ).load()
    assert {bar.name for bar in memory.bars} | {*memory.forbidden} == {*cells["strategy"].values}
    for bar in memory.bars:
        assert bar.total == pytest.approx(float(cells["memory"].sel(strategy=bar.name)), rel=1e-6)
        assert bar.fits == bool(cells.paradl.feasible.sel(strategy=bar.name))
        assert bar.capacity == 16e9
    assert memory.forbidden["serial"] == "too many PEs"


def test_bars_of_pe_counts_add_up(mixed_url, mixed):
    selection = ALEXNET | {"strategy": "data+spatial:group=best"}
    memory = describe_memory(mixed_url, selection)
    assert memory.by == "pe"
    cells = mixed.sel(model="alexnet", dataset="imagenet-226", batch=8, inter_bandwidth=1e9)
    line = cells.isel(system=0).sel(strategy="data+spatial:group=best")["memory"]
    stored = {f"p = {int(p):,}": float(value) for p, value in zip(line["pe"], line, strict=True)}
    for bar in memory.bars:
        assert bar.total == pytest.approx(stored[bar.name], rel=1e-6)


def test_what_does_not_fit_is_shown(mixed):
    cosmoflow = {"model": "cosmoflow", "inter_bandwidth": "1 GB/s", "batch": 64, "pe": 4}
    memory = describe_memory(mixed, cosmoflow)
    assert any(not bar.fits and bar.total > bar.capacity for bar in memory.bars)
    assert all(bar.fits == (bar.total <= bar.capacity) for bar in memory.bars)


def test_parts_of_the_machine_oracle_add_up(machine_url):
    memory = describe_memory(machine_url)
    stored = sweep.open_dataset(machine_url)["memory"].values.reshape(-1)
    np.testing.assert_allclose([bar.total for bar in memory.bars], stored, rtol=1e-6)
    parts = {"activations", "weights", "gradients", "optimizer", "reserved"}
    assert all({*bar.parts} == parts for bar in memory.bars)


def test_of_many_counts_some_are_shown(mixed):
    import xarray as xr

    limit = np.zeros((1, 1, 1, 1, 500), np.uint16)
    dims = ("model", "dataset", "system", "strategy", "pe")
    cells = xr.Dataset({"limit": (dims, limit)}, coords={"pe": np.arange(1, 501)})
    chosen = _spread_positions(cells, "pe")
    assert chosen[0] == 0
    assert chosen[-1] == 499
    assert len(chosen) <= MOST_BARS


def test_strategies_or_counts_but_not_both(mixed):
    with pytest.raises(InputError, match="one value of pe"):
        describe_memory(mixed, ALEXNET)


def test_an_empty_picture_is_refused(mixed):
    with pytest.raises(NothingFeasibleError, match="too many PEs"):
        describe_memory(mixed, ALEXNET | {"strategy": "serial", "pe": 4})
