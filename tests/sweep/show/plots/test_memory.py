from typing import Any

import pytest

from sweep.questions.pictures.memory import Bar, Memory
from sweep.show.plots.memory import draw_memory

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_memory

PARTS = {"activations": 6e9, "weights": 1e9, "gradients": 1e9, "optimizer": 2e9, "reserved": 1e9}


def make_memory(count: int, most: float = 25.1e9) -> Memory:
    """Bars of which the last needs `most`."""
    bars = []
    for number in range(count):
        factor = most / 11e9 * (number + 1) / count
        parts = {name: size * factor for name, size in PARTS.items()}
        bars.append(Bar(f"data+spatial:group={2**number}", parts, 16e9, sum(parts.values()) < 16e9))
    place = "cosmoflow, cosmoflow-512 on dgx-a100-80gb, p = 64, b = 8"
    return Memory(place, "strategy", tuple(bars), {"serial": "too many PEs"})


@pytest.mark.parametrize("size", ["paper", "page", "slide"])
@pytest.mark.parametrize("count", [1, 4, 20])
def test_texts_are_legible(count, size, expect_legible):
    texts = expect_legible(draw(make_memory(count), size))
    assert "25.1 of 16 GB" in texts
    assert "capacity 16 GB" in texts
    assert {*PARTS} <= {*texts}
    assert any("not drawn: serial (too many PEs)" in text for text in texts)


@pytest.mark.parametrize("most", [2e6, 8e9, 400e9])
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
    drawn = [bar.get_width() * 1e9 for bar in axes.patches]
    assert drawn == pytest.approx([size for bar in memory.bars for size in bar.parts.values()])
    assert "[GB]" in axes.get_xlabel()
    # The first bar is at the top.
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
