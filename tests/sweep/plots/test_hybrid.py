"""The picture of speed-ups: lines, bands, and where they cross."""

from typing import Any

import pytest

import paradl
from paradl.grids.convergence.entry import Convergence
from paradl.sweep.plots.hybrid import draw_hybrid

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_hybrid


def ask(name: str = "mine", pe: Any = 64, **more: Any) -> dict[str, Any]:
    names: Any = dict.fromkeys(("name", "model", "dataset", "target"), "mine")
    law = Convergence(**names, epochs_min=4, critical_batch=512, batch_variance=0.1, **more)
    given: dict[int, float] = {2: 1.7, 4: 2.5}
    return paradl.hybrid(name, 64, pe, speedups=given, scaling_efficiency=1, convergence=law)


def test_a_line_for_each_contender_with_its_band(expect_legible):
    answer = ask()
    figure = draw(answer)
    expect_legible(figure)
    axes = figure.axes[0]
    lines = {line.get_label().partition("\n")[0]: line for line in axes.get_lines()}
    for name in ("data", "2-way", "4-way"):
        rows = [row for row in answer["rows"] if row["strategy"] == name]
        assert list(lines[name].get_xdata()) == [row["pe"] for row in rows]
        assert list(lines[name].get_ydata()) == [row["speedup"] for row in rows]
    texts = [text.get_text().partition("\n")[0] for text in figure.legends[0].get_texts()]
    assert texts == ["data", "2-way", "4-way"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_batches_that_were_not_measured_are_hollow(expect_legible):
    answer = ask()
    answer["rows"][0]["extrapolated"] = True
    texts = expect_legible(draw(answer))
    assert texts[-1].startswith("batch outside")


def test_crossovers_are_told_and_marked():
    answer = ask()
    counts = [
        crossover["pe"] for crossover in answer["crossovers"] if crossover["against"] == "same"
    ]
    assert all(counts)
    figure = draw(answer)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [text.partition("\n")[2] for text in texts[1:3]] == [f"wins from {n}" for n in counts]
    segments = [
        collection
        for collection in figure.axes[0].collections
        if hasattr(collection, "get_segments")
    ]
    assert [segment.get_segments()[0][0][0] for segment in segments] == counts


def test_what_never_converges_is_left_out():
    axes = draw(ask(converges_to=1024)).axes[0]
    [data] = [line for line in axes.get_lines() if line.get_label() == "data"]
    assert max(data.get_xdata()) == 16


def test_a_name_is_no_formula(tmp_path):
    draw(ask("$x_{$ \x1b[31m 50 % {of} \\frac")).savefig(
        tmp_path / "hybrid.png"
    )  # warnings are errors
    assert (tmp_path / "hybrid.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("more", [{}, {"converges_to": 64}])
@pytest.mark.parametrize("count", [4, 64])
def test_one_count_can_be_drawn(count, more):
    draw(ask(pe=[count], **more)).draw_without_rendering()  # warnings are errors


def test_ticks_do_not_crowd(expect_legible):
    expect_legible(draw(ask(pe=list(range(1, 65)))))
