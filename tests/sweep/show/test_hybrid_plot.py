"""The picture of speed-ups: lines, bands, and where they cross."""

from pathlib import Path
from typing import Any

import pytest

import sweep
from grids.convergence.entry import Convergence
from sweep.show.plots.hybrid import plot_hybrid

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


@pytest.fixture
def drawn(monkeypatch):
    """The axes of an answer's figure, instead of its file."""
    kept: list[Any] = []
    monkeypatch.setattr(
        "sweep.show.plots.hybrid.save_figure", lambda figure, path: kept.append(figure)
    )

    def draw(answer):
        plot_hybrid(answer, Path("kept.png"))
        return kept[-1].axes[0]

    return draw


def ask(name: str = "mine", pe: Any = 64, **more: Any) -> dict[str, Any]:
    names: Any = dict.fromkeys(("name", "model", "dataset", "target"), "mine")
    law = Convergence(**names, epochs_min=4, critical_batch=512, batch_variance=0.1, **more)
    given: dict[int, float] = {2: 1.7, 4: 2.5}
    return sweep.hybrid(name, 64, pe, speedups=given, scaling_efficiency=1, convergence=law)


def test_a_line_for_each_contender_with_its_band(drawn):
    answer = ask()
    axes = drawn(answer)
    lines = {line.get_label(): line for line in axes.get_lines()}
    for name in ("data", "2-way", "4-way"):
        rows = [row for row in answer["rows"] if row["strategy"] == name]
        assert list(lines[name].get_xdata()) == [row["pe"] for row in rows]
        assert list(lines[name].get_ydata()) == [row["speedup"] for row in rows]
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["data", "2-way", "4-way", "batch beyond the measured ones"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_crossovers_are_marked(drawn):
    answer = ask()
    counts = [each["pe"] for each in answer["crossovers"] if each["against"] == "same"]
    assert all(counts)
    assert [text.get_text() for text in drawn(answer).texts] == [f"wins from {n}" for n in counts]


def test_what_never_converges_is_left_out(drawn):
    axes = drawn(ask(converges_to=1024))
    [data] = [line for line in axes.get_lines() if line.get_label() == "data"]
    assert max(data.get_xdata()) == 16


@pytest.mark.parametrize("name", ["$x_{$", "\x1b[31m", "50 % {of} \\frac"])
def test_a_name_is_no_formula(name, tmp_path):
    plot_hybrid(ask(name), tmp_path / "hybrid.png")  # warnings are errors
    assert (tmp_path / "hybrid.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("counts", [[4], list(range(1, 65)), [64]])
def test_any_list_of_counts_can_be_drawn(counts, tmp_path):
    plot_hybrid(ask(pe=counts), tmp_path / "few.png")  # warnings are errors
    plot_hybrid(ask(pe=counts, converges_to=64), tmp_path / "fewer.png")


def test_ticks_do_not_crowd(drawn):
    axes = drawn(ask(pe=list(range(1, 65))))
    assert len(axes.get_xticks()) <= 15
