"""The picture of accuracy: what is drawn, and what is said where it cannot be."""

import sys
from pathlib import Path

import pytest

from grids.reading.errors import InputError
from sweep.errors import RunError
from sweep.show.plots.accuracy import SLOTS_A_LINE, make_panels, plot_accuracy

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


@pytest.fixture
def drawn(monkeypatch):
    """The figure of some rows, instead of its file."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    kept = []
    monkeypatch.setattr(
        "sweep.show.plots.accuracy.save_figure", lambda figure, path: kept.append(figure)
    )

    def draw(rows):
        plot_accuracy(rows, Path("kept.png"))
        return kept[-1]

    return draw


def heights(axes) -> list[float]:
    return [bar.get_height() for bar in axes.patches]


def test_bars_are_stacked_and_accuracies_written(drawn):
    data, split, _ = drawn(ROWS).axes
    assert heights(data) == pytest.approx([0.2, 0.1, 0.2, 0.2, 0.2, 0.1, 0.4, 0.2, 0.1, 0.2, 0.2])
    assert [text.get_text() for text in data.texts] == ["75%", "75%", "75%"]
    assert [text.get_text() for text in data.get_xticklabels()] == ["1", "4", "8"]
    assert heights(split) == pytest.approx([0.2, 0.2, 0.2, 0.1, 0.2, 0.2])
    assert [text.get_text() for text in split.texts] == ["-", "75%"]
    assert len(split.containers) > len(split.patches)  # the interval is a container, too


def test_the_legend_tells_what_is_there(drawn):
    def legend(rows):
        return [text.get_text() for text in drawn(rows).legends[0].get_texts()]

    assert "measured in total only" in legend(ROWS)
    assert "80% interval" in legend(ROWS)
    assert len(legend([row()])) == 5


def test_many_runs_take_several_lines(drawn):
    axes = drawn([row(strategy, p) for strategy in ("data", "filter") for p in range(20)]).axes
    first, second = (each.get_position() for each in axes)
    assert first.y0 > second.y1
    assert SLOTS_A_LINE < 40


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_suffix_is_the_format(suffix, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    path = tmp_path / f"accuracy.{suffix}"
    plot_accuracy(ROWS, path)
    head = {"png": PNG, "svg": b"<?xml", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(head[suffix])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.txt", "got '.txt'; write it like a.png"),
        ("no/folder.png", "No such file"),
        ("a", "expected a suffix that names the format, .png, .svg, .pdf, got none"),
    ],
)
def test_where_nothing_can_be_written(name, message, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    with pytest.raises(InputError, match=message):
        plot_accuracy(ROWS, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["$x_{$", "\x1b[31m", "50 % {of} \\frac"])
def test_a_name_is_no_formula(name, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    plot_accuracy([row(model=name)], tmp_path / "accuracy.png")  # warnings are errors
    assert (tmp_path / "accuracy.png").read_bytes().startswith(PNG)


def test_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RunError, match=r"pip install '\.\[plot\]'"):
        plot_accuracy(ROWS, tmp_path / "a.png")


def test_the_command(tmp_path, paradl):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    runs = tmp_path / "runs.csv"
    runs.write_text(
        "model,dataset,strategy,p,samples_per_replica,total_s\nalexnet,imagenet,data,8,32,0.1\n"
    )
    path = tmp_path / "accuracy.png"
    asked = ("plot", "accuracy", runs, "-o", path, "--calibration", "none")
    assert paradl(*asked) == (0, "", "")
    assert path.read_bytes().startswith(PNG)
