"""Curves as people see them: 1, 4 and 20, in a column of a paper, on a page and on a slide."""

from typing import Any

import numpy as np
import pytest

from grids.entries.strategies import MEANING
from sweep.questions.pictures.scaling import Curve, Scaling
from sweep.show.plots.colours import choose_looks
from sweep.show.plots.scaling import MARKS, MOST_BANDS, choose_marks, draw_scaling, is_stopped

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_scaling

GROUPS = ("spatial", "pipeline", "filter", "channel", "data+spatial", "data+filter")
LABELS = [*MEANING, *(f"data+{name}:group={n}" for name in GROUPS[:4] for n in (2, 4, 8))]


def make_scaling(count: int, quantity="time", banded=True) -> Scaling:
    """Curves that lie close together, every third of which a limit ends."""
    curves = []
    for number, label in enumerate(LABELS[:count]):
        last = 1 if label == "serial" else 2 ** (4 + number % 7)
        pe = np.exp2(np.arange(np.log2(last) + 1))
        values = 5000 * (1 + 0.05 * number) / pe**0.8
        low, high = (values / 1.3, values * 1.3) if banded else (None, None)
        cause = None if last == 1024 else "too many PEs"
        curves.append(Curve(label, pe, values, low, high, cause))
    place = "resnet50, imagenet on dgx-a100-80gb, b = 32"
    return Scaling(quantity, place, tuple(curves), tuple(LABELS), {"channel": "memory"})


@pytest.mark.parametrize("size", ["paper", "page", "slide"])
@pytest.mark.parametrize("count", [1, 4, 20])
def test_texts_are_legible(count, size, expect_legible):
    scaling = make_scaling(count)
    figure = draw(scaling, size)
    texts = expect_legible(figure)
    assert {curve.strategy for curve in scaling.curves} <= {*texts}
    # Names stand beside the axes, and so over no data.
    right = figure.axes[0].get_window_extent().x1
    named = [text for text in figure.texts if text.get_text() in LABELS]
    assert len(named) == count
    assert all(text.get_window_extent().x0 > right for text in named)


@pytest.mark.parametrize("count", [4, 20])
def test_every_cause_is_told(count, expect_legible):
    scaling = make_scaling(count)
    texts = expect_legible(draw(scaling, "paper"))
    stopped = [curve for curve in scaling.curves if is_stopped(curve)]
    note = "".join(text for text in texts if "(" in text).replace("\n", " ")
    beside = texts.count("too many PEs")
    assert beside + note.count(" at ") == len(stopped)
    assert "not drawn: channel (memory)" in note


def test_curves_look_as_their_strategies(expect_legible):
    scaling = make_scaling(4)
    axes = draw(scaling).axes[0]
    looks = choose_looks(LABELS)
    lines = {line.get_label(): line for line in axes.get_lines()}
    for curve in scaling.curves:
        line = lines[curve.strategy]
        assert line.get_color() == looks[curve.strategy].colour
        np.testing.assert_array_equal(line.get_xdata(), curve.pe)
        np.testing.assert_array_equal(line.get_ydata(), curve.values)


def test_bands_are_drawn_as_long_as_they_can_be_told_apart():
    assert len(draw(make_scaling(4)).axes[0].collections) == 4
    assert not draw(make_scaling(MOST_BANDS + 1)).axes[0].collections
    assert not draw(make_scaling(4, banded=False)).axes[0].collections
    figure = draw(make_scaling(4))
    low, high = figure.axes[0].get_ylim()
    curves: Any = make_scaling(4).curves
    assert all(low < curve.low.min() for curve in curves)
    assert all(curve.high.max() < high for curve in curves)


@pytest.mark.parametrize(
    ("quantity", "unit"),
    [("time", "[s]"), ("throughput", "samples a second"), ("efficiency", "efficiency")],
)
def test_axes_have_units_and_plain_numbers(quantity, unit):
    axes = draw(make_scaling(4, quantity)).axes[0]
    assert unit in axes.get_ylabel()
    assert (axes.get_xscale(), axes.xaxis.get_transform().base) == ("log", 2)
    assert [text.get_text() for text in axes.get_xticklabels()][-1] == "128"


def test_many_points_have_few_marks():
    assert choose_marks(np.arange(1.0, 10)) == list(range(9))
    marks = choose_marks(np.arange(1.0, 1025))
    assert marks[0] == 0
    assert marks[-1] == 1023
    assert len(marks) <= MARKS


def test_a_name_is_no_formula(tmp_path):
    scaling = make_scaling(1)
    odd = Scaling("time", "$x_{$ \x1b[31m", scaling.curves, scaling.known, {"$y_{$": "memory"})
    draw(odd).savefig(tmp_path / "odd.png")  # warnings are errors
