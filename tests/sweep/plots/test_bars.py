"""Stacked bars: their parts, texts and line of capacities, and room for names."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paradl.kernels.names.terms import list_terms
from paradl.sweep.plots.bars import Bars, draw_bars
from paradl.sweep.plots.looks import LESS, MEMORY_LOOKS, MORE, SLOPE_LOOKS, TERM_LOOKS

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_bars

SUMMED = (*list_terms("compute"), *list_terms("communication"))
SIZES = {"activations": 6e9, "weights": 1e9, "gradients": 1e9, "states": 2e9, "reserved": 1e9}
MEMORY: Any = {"looks": MEMORY_LOOKS, "quantity": ("memory per PE", "B")}


def make_memory(count: int, most: float = 25.1e9) -> Bars:
    """Bars of which the last needs `most`."""
    factors = most / 11e9 * np.arange(1, count + 1) / count
    totals = 11e9 * factors
    return Bars(
        "cosmoflow, cosmoflow-512 on dgx-a100-80gb, p = 64, b = 8",
        [f"data+spatial:group={2**number}" for number in range(count)],
        {name: size * factors for name, size in SIZES.items()},
        **MEMORY,
        texts=[f"{total / 1e9:.3g} GB" for total in totals],
        notes=["not drawn: serial (too many PEs)"],
        bold=[*np.flatnonzero(totals > 16e9)],
        capacities=[16e9] * count,
    )


def make_terms(counts: int, terms: int = len(SUMMED)) -> Bars:
    pe = np.unique(np.round(np.geomspace(1, 1024, counts)))
    seconds = {name: 0.01 * (n + 1) * pe**0.1 for n, name in enumerate(SUMMED[:terms])}
    seconds["weight_update"] = np.full(len(pe), 1e-8)
    return Bars(
        "time of an iteration: data+spatial, vgg16, imagenet on abci, b = 32",
        [f"{count:,.0f}" for count in pe],
        seconds,
        TERM_LOOKS,
        ("time of an iteration", "s"),
        ["2.01 ms, 30% comm."] * len(pe),
        ["ends: memory"],
        axis="PEs, p",
    )


@pytest.mark.parametrize(("count", "size"), [(1, "slide"), (20, "paper")])
def test_memory_is_legible(count, size, expect_legible):
    texts = expect_legible(draw(make_memory(count), size))
    assert {"25.1 GB", "capacity\n16 GB", *SIZES} <= {*texts}
    assert any("not drawn: serial (too many PEs)" in text for text in texts)


@pytest.mark.parametrize(
    ("terms", "counts", "size"),
    [(1, 11, "paper"), (len(SUMMED), 1, "slide"), (len(SUMMED), 11, "paper")],
)
def test_terms_are_legible(terms, counts, size, expect_legible):
    texts = expect_legible(draw(make_terms(counts, terms), size))
    assert "forward and backward" in texts
    assert any("memory" in text for text in texts)


@pytest.mark.parametrize(("count", "size"), [(1, "slide"), (12, "paper")])
def test_a_tornado_is_legible(count, size, expect_legible):
    slopes = np.array([(-1) ** n / (n + 1) for n in range(count)])
    parts = {MORE: np.minimum(slopes, 0), LESS: np.maximum(slopes, 0)}
    names = [f"bandwidth of memory {n}" for n in range(count)]
    texts = ["doubled: -41.3%"] * count
    bars = Bars("vgg16 on abci, p = 64", names, parts, SLOPE_LOOKS, ("elasticity", ""), texts)
    figure = draw(bars, size)
    assert {*names} <= {*expect_legible(figure)}
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == ([LESS] if count == 1 else [MORE, LESS])
    assert figure.axes[0].get_xlabel() == "elasticity"


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
    assert drawn == pytest.approx(sorted(np.concatenate([*memory.parts.values()])))
    assert axes.get_xlabel() == "memory per PE [GB]"
    assert axes.xaxis.get_major_formatter()(5e9) == "5"
    # The first bar is at the top.
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_each_bar_has_its_name_and_text():
    bars = make_terms(11, 3)
    axes = draw(bars).axes[0]
    ends = np.array([bar.get_x() + bar.get_width() for bar in axes.patches]).reshape(-1, 11)
    np.testing.assert_allclose(ends.max(axis=0), bars.totals - bars.parts["weight_update"])
    assert [text.get_text() for text in axes.get_yticklabels()] == bars.names
    (right,) = axes.child_axes
    assert [text.get_text() for text in right.get_yticklabels()] == bars.texts
    assert axes.get_xlabel() == "time of an iteration [ms]"


def test_machines_have_their_own_capacities(expect_legible):
    parts = {"activations": np.array([7e9, 7e9])}
    bars = Bars(
        "resnet50, imagenet, data, p = 8, b = 128",
        ["abci", "dgx-h100"],
        parts,
        **MEMORY,
        texts=["7 GB"] * 2,
        capacities=[16e9, 80e9],
    )
    figure = draw(bars)
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
    parts = {"activations": np.array([1e10]), "states": np.array([1e5])}
    figure = draw(replace(make_memory(1), parts=parts))
    texts = [key.get_text() for key in figure.legends[0].get_texts()]
    assert texts == ["activations", "capacity\n16 GB"]
    assert "states" in figure.get_supxlabel()


def test_names_of_two_lines_have_room(expect_legible):
    """Among those of one line, which stay as close as they were."""
    names = [
        f"data+pipeline:group={2**n},segments=16" if n % 3 else f"filter:{n}" for n in range(7)
    ]
    texts = expect_legible(draw(replace(make_memory(7), names=names), "paper"))
    assert any("\n" in text for text in texts)
