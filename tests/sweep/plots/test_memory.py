"""Bars add up to the memory in the cube."""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.figures import MOST_BARS
from paradl.sweep.plots.memory import MOST_LAYOUTS, Bar, MemoryBars, describe_memory, draw_memory
from paradl.sweep.plots.slices import open_slice

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
    stored = paradl.open_dataset(machine_url)["memory"].values.reshape(-1)
    np.testing.assert_allclose([bar.total for bar in memory.bars], stored, rtol=1e-6)
    parts = {"activations", "weights", "gradients", "states", "reserved"}
    assert all({*bar.parts} == parts for bar in memory.bars)


def test_of_many_counts_some_are_shown(many_counts):
    memory = describe_memory(many_counts)
    counts = [float(bar.name.removeprefix("p = ")) for bar in memory.bars]
    assert counts[0] == 1
    assert len(counts) <= MOST_BARS
    assert str(len(counts)) in memory.note


def test_of_many_layouts_the_fastest_are_shown(layouts):
    chosen: dict[str, Any] = {"pe": 64, "batch": 128}
    memory = describe_memory(layouts, chosen)
    assert memory.by == "layout"
    assert len(memory.bars) == MOST_LAYOUTS
    cells = open_slice(layouts, chosen)
    times = cells.paradl.epoch_time.values.reshape(-1)
    fastest = np.argsort(times)[:MOST_LAYOUTS]  # NaN, of those that cannot be, comes last
    stored = cells["memory"].values.reshape(-1)[fastest]
    np.testing.assert_allclose([bar.total for bar in memory.bars], stored, rtol=1e-6)
    assert all("tp" in bar.name and "dp" in bar.name for bar in memory.bars)
    assert all(bar.fits == (bar.total <= bar.capacity) for bar in memory.bars)


def test_strategies_or_counts_but_not_both(mixed):
    with pytest.raises(InputError, match="pe"):
        describe_memory(mixed, ALEXNET)


def test_an_empty_picture_is_refused(mixed):
    with pytest.raises(NothingFeasibleError, match="too many PEs"):
        describe_memory(mixed, ALEXNET | {"strategy": "serial", "pe": 4})


# What figures are made of is typed too widely to be asked about.
draw: Any = draw_memory

PARTS = {"activations": 6e9, "weights": 1e9, "gradients": 1e9, "states": 2e9, "reserved": 1e9}


def make_memory(count: int, most: float = 25.1e9) -> MemoryBars:
    """Bars of which the last needs `most`."""
    bars = []
    for number in range(count):
        factor = most / 11e9 * (number + 1) / count
        parts = {name: size * factor for name, size in PARTS.items()}
        bars.append(Bar(f"data+spatial:group={2**number}", parts, 16e9, sum(parts.values()) < 16e9))
    place = "cosmoflow, cosmoflow-512 on dgx-a100-80gb, p = 64, b = 8"
    return MemoryBars(place, "strategy", tuple(bars), {"serial": "too many PEs"})


@pytest.mark.parametrize(("count", "size"), [(1, "slide"), (20, "paper")])
def test_texts_are_legible(count, size, expect_legible):
    texts = expect_legible(draw(make_memory(count), size))
    assert "25.1 GB" in texts
    assert "capacity\n16 GB" in texts
    assert {*PARTS} <= {*texts}
    assert any("not drawn: serial (too many PEs)" in text for text in texts)


@pytest.mark.parametrize("most", [2e6, 400e9])
def test_any_size_has_room(most, expect_legible):
    figure = draw(make_memory(4, most), "paper")
    expect_legible(figure)
    low, high = figure.axes[0].get_xlim()
    assert low == 0
    bars = figure.axes[0].patches
    assert max(bar.get_x() + bar.get_width() for bar in bars) < high
    assert {line.get_xdata()[0] < high for line in figure.axes[0].get_lines()} == {True}


def test_bars_are_the_parts():
    memory = make_memory(2)
    axes = draw(memory).axes[0]
    drawn = sorted(bar.get_width() for bar in axes.patches)
    assert drawn == pytest.approx(sorted(bar.parts[name] for name in PARTS for bar in memory.bars))
    assert axes.get_xlabel() == "memory per PE [GB]"
    assert axes.xaxis.get_major_formatter()(5e9) == "5"
    # The first bar is at the top.
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_machines_have_their_own_capacities(expect_legible):
    bars = tuple(
        Bar(name, {"activations": 7e9}, capacity, fits=True)
        for name, capacity in (("abci", 16e9), ("dgx-h100", 80e9))
    )
    figure = draw(MemoryBars("resnet50, imagenet, data, p = 8, b = 128", "system", bars))
    expect_legible(figure)
    axes = figure.axes[0]
    for collection in axes.collections:
        lines = [[(x, round(y)) for x, y in segment] for segment in collection.get_segments()]
        assert [line[0][0] for line in lines] == [16e9, 80e9]
        # Each line is at the height of its bar.
        for (_, top), (_, bottom), row in zip(*zip(*lines, strict=True), (0, 1), strict=True):
            assert top <= row <= bottom
    assert axes.get_xlim()[1] > 80e9
    assert figure.legends[0].get_texts()[-1].get_text() == "capacity"


def test_a_part_that_cannot_be_seen_is_named():
    bar = Bar("data", {"activations": 1e10, "states": 1e5}, 16e9, fits=True)
    figure = draw(MemoryBars("here", "strategy", (bar,)))
    texts = [key.get_text() for key in figure.legends[0].get_texts()]
    assert texts == ["activations", "capacity\n16 GB"]
    assert "states" in figure.get_supxlabel()


def test_names_of_two_lines_have_room(expect_legible):
    """Among those of one line, which stay as close as they were."""
    names = [
        f"data+pipeline:group={2**n},segments=16" if n % 3 else f"filter:{n}" for n in range(7)
    ]
    bars = tuple(Bar(name, {"weights": 1e9}, 4e9, True) for name in names)
    texts = expect_legible(draw(MemoryBars("several", "strategy", bars), "paper"))
    assert any("\n" in text for text in texts)
