"""The picture of accuracy: what is drawn, and what is said where it cannot be."""

import sys
from typing import Any

import pytest
import xarray as xr

import sweep
from grids.reading.errors import InputError
from sweep.plots.accuracy import SLOTS_PER_LINE, draw_accuracy, make_panels
from sweep.plots.figures import save_figure

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_accuracy

PNG = b"\x89PNG"


def row(strategy: str = "data", p: int = 8, **more: object) -> dict:
    return {
        "model": "alexnet",
        "dataset": "imagenet",
        "strategy": strategy,
        "p": p,
        "samples_per_replica": 32,
        "predicted_total": 0.3,
        "predicted_comp": 0.2,
        "predicted_comm": 0.1,
        "measured_total": 0.4,
        "measured_comp": 0.2,
        "measured_comm": 0.2,
        "accuracy_total": 0.75,
        "p10": None,
        "p90": None,
        **more,
    }


UNPREDICTED = dict.fromkeys(
    ("predicted_total", "predicted_comp", "predicted_comm", "accuracy_total")
)
ROWS = [
    row(),
    row(p=4, measured_comp=None, measured_comm=None),
    row("filter", p10=0.25, p90=0.36),
    row("filter", p=6, **UNPREDICTED),
    row("serial", p=1),
    row(model="vgg16"),
]


def test_a_panel_for_each_model_and_strategy():
    titles = [panel.title for panel in make_panels(ROWS)]
    assert titles == [
        "alexnet, imagenet\ndata, b = 32",
        "alexnet, imagenet\nfilter, b = 32",
        "vgg16, imagenet\ndata, b = 32",
    ]
    assert [each["p"] for each in make_panels(ROWS)[0].rows] == [1, 4, 8]


def heights(axes) -> list[float]:
    return [bar.get_height() for bar in axes.patches]


def test_bars_are_stacked_and_accuracies_written():
    data, split, _ = draw(ROWS).axes
    assert heights(data) == pytest.approx([0.2, 0.1, 0.2, 0.2, 0.2, 0.1, 0.4, 0.2, 0.1, 0.2, 0.2])
    assert [text.get_text() for text in data.texts] == ["75%", "75%", "75%"]
    assert [text.get_text() for text in data.get_xticklabels()] == ["1", "4", "8"]
    assert heights(split) == pytest.approx([0.2, 0.2, 0.2, 0.1, 0.2, 0.2])
    assert [text.get_text() for text in split.texts] == ["-", "75%"]
    assert len(split.containers) > len(split.patches)  # the interval is a container, too


def test_the_legend_tells_what_is_there():
    def legend(rows):
        return [text.get_text() for text in draw(rows).legends[0].get_texts()]

    assert "measured in total only" in legend(ROWS)
    assert "80 % interval" in legend(ROWS)
    assert len(legend([row()])) == 5


def test_many_runs_take_several_lines():
    axes = draw([row(strategy, p) for strategy in ("data", "filter") for p in range(20)]).axes
    first, second = (each.get_window_extent() for each in axes)
    assert first.y0 > second.y1
    assert SLOTS_PER_LINE < 40


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.txt", "a.png"),
        ("no/folder.png", "No such file"),
        ("a", "a.png"),
    ],
)
def test_where_nothing_can_be_written(name, message, tmp_path):
    with pytest.raises(InputError, match=message):
        save_figure(draw(ROWS), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["$x_{$", "\x1b[31m", "50 % {of} \\frac"])
def test_a_name_is_no_formula(name, tmp_path):
    figure = draw([row(model=name)])
    save_figure(figure, tmp_path / "accuracy.png")  # warnings are errors
    assert (tmp_path / "accuracy.png").read_bytes().startswith(PNG)


def test_without_matplotlib(monkeypatch):
    """Nothing but drawing needs it, and drawing says what to do."""
    for name in [name for name in sys.modules if name.startswith("sweep.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(sweep.RunError, match=r"pip install '.\[plot\]'"):
        _ = xr.Dataset().paradl.plot


def test_the_command(tmp_path, paradl):
    runs = tmp_path / "runs.csv"
    runs.write_text(
        "model,dataset,strategy,p,samples_per_replica,total_s\nalexnet,imagenet,data,8,32,0.1\n"
    )
    path = tmp_path / "accuracy.png"
    asked = ("plot", "accuracy", runs, "-o", path, "--calibration", "none")
    assert paradl(*asked) == (0, "", "")
    assert path.read_bytes().startswith(PNG)
