"""Bars add up to the memory in the cube."""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.bars import MOST_BARS, Bars
from paradl.sweep.plots.slices import open_slice
from paradl.sweep.plots.stacks import MOST_LAYOUTS, describe_memory

ALEXNET: dict[str, Any] = {"model": "alexnet", "inter_bandwidth": "1 GB/s", "batch": 8}


def fit(memory: Bars) -> list[bool]:
    """Whether each bar fits, by its text."""
    return [bar not in memory.bold for bar in range(len(memory.names))]


def test_bars_of_strategies_add_up(mixed):
    memory = describe_memory(mixed, ALEXNET | {"pe": 4})
    cells = mixed.sel(
        model="alexnet", dataset="imagenet-226", system="abci", batch=8, inter_bandwidth=1e9, pe=4
    ).load()
    drawn = cells.sel(strategy=list(memory.names))
    np.testing.assert_allclose(memory.totals, drawn["memory"], rtol=1e-6)
    assert fit(memory) == drawn.paradl.feasible.values.tolist()
    assert {*memory.capacities} == {16e9}
    (note,) = memory.notes
    assert note.startswith("not drawn: serial")
    assert note.endswith("(too many PEs)")
    assert all(name in (*memory.names, *note.split()) for name in cells["strategy"].values)


def test_bars_of_pe_counts_add_up(mixed_url, mixed):
    selection = ALEXNET | {"strategy": "data+spatial:group=best"}
    memory = describe_memory(mixed_url, selection)
    cells = mixed.sel(model="alexnet", dataset="imagenet-226", batch=8, inter_bandwidth=1e9)
    line = cells.isel(system=0).sel(strategy="data+spatial:group=best")["memory"]
    stored = {f"p = {int(p):,}": float(value) for p, value in zip(line["pe"], line, strict=True)}
    np.testing.assert_allclose(memory.totals, [stored[name] for name in memory.names], rtol=1e-6)


def test_what_does_not_fit_is_shown(mixed):
    cosmoflow = {"model": "cosmoflow", "inter_bandwidth": "1 GB/s", "batch": 64, "pe": 4}
    memory = describe_memory(mixed, cosmoflow)
    assert fit(memory) == (memory.totals <= memory.capacities).tolist()
    assert not all(fit(memory))


def test_parts_of_the_machine_oracle_add_up(machine_url):
    memory = describe_memory(machine_url)
    stored = paradl.open_dataset(machine_url)["memory"].values.reshape(-1)
    np.testing.assert_allclose(memory.totals, stored, rtol=1e-6)
    assert {*memory.parts} == {"activations", "weights", "gradients", "states", "reserved"}


def test_of_many_counts_some_are_shown(many_counts):
    memory = describe_memory(many_counts)
    counts = [float(name.removeprefix("p = ")) for name in memory.names]
    assert counts[0] == 1
    assert len(counts) <= MOST_BARS
    assert str(len(counts)) in memory.notes[0]


def test_of_many_layouts_the_fastest_are_shown(layouts):
    chosen: dict[str, Any] = {"pe": 64, "batch": 128}
    memory = describe_memory(layouts, chosen)
    assert len(memory.names) == MOST_LAYOUTS
    cells = open_slice(layouts, chosen)
    times = cells.paradl.epoch_time.values.reshape(-1)
    fastest = np.argsort(times)[:MOST_LAYOUTS]  # NaN, of those that cannot be, comes last
    stored = cells["memory"].values.reshape(-1)[fastest]
    np.testing.assert_allclose(memory.totals, stored, rtol=1e-6)
    assert all("tp" in name and "dp" in name for name in memory.names)
    assert fit(memory) == (memory.totals <= memory.capacities).tolist()


def test_strategies_or_counts_but_not_both(mixed):
    with pytest.raises(InputError, match="pe"):
        describe_memory(mixed, ALEXNET)


def test_an_empty_picture_is_refused(mixed):
    with pytest.raises(NothingFeasibleError, match="too many PEs"):
        describe_memory(mixed, ALEXNET | {"strategy": "serial", "pe": 4})
