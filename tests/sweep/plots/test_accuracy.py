"""The picture of accuracy: what is drawn, and what is said where it cannot be."""

import sys
from typing import Any

import pytest
import xarray as xr

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.plots.accuracy import draw_accuracy
from paradl.sweep.plots.figures import save_figure

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
        "fitted": False,
        **more,
    }


def test_the_band_is_within_ten_percent_of_the_measured_time():
    (axes,) = draw([row()]).axes
    (band,) = axes.patches
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.9, 1.1))


def test_runs_of_all_panels_are_inside_or_counted():
    rows = [row(), row(model="vgg16", measured_total=1.5), row(model="vgg16", measured_total=300)]
    figure = draw(rows)
    for axes, ratio in zip(figure.axes, (0.75, 0.2), strict=True):
        low, high = axes.get_ylim()
        assert low < ratio < high
    assert any("1 run beyond a factor of 10" in text.get_text() for text in figure.texts)


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


def test_a_panel_for_each_model_and_data_set():
    panels = draw(ROWS).axes
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles == ["alexnet\nimagenet", "vgg16\nimagenet"]
    assert panels[0].get_ylim() == panels[1].get_ylim()


def test_points_are_predicted_over_measured_times():
    axes = draw(ROWS).axes[0]
    points = {
        (x, round(y, 9))
        for line in axes.get_lines()
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }
    assert points == {(8, 0.75), (4, 0.75), (1, 0.75)}  # 6 has no prediction
    segments = [part for group in axes.collections for part in group.get_segments()]
    (interval,) = [part for part in segments if part.size]
    assert interval[:, 1].tolist() == pytest.approx([0.25 / 0.4, 0.36 / 0.4])


@pytest.mark.parametrize(("panels", "size"), [(1, "slide"), (5, "paper")])
def test_texts_are_legible(panels, size, expect_legible):
    rows = [
        row(p=2**n, model=f"model {k}", p10=0.2, p90=0.5) for k in range(panels) for n in range(11)
    ]
    figure = draw(rows, size)
    texts = expect_legible(figure)
    assert f"{75}% on average of {len(rows)} runs" in figure.get_suptitle()
    assert {
        "data",
        "80 % interval",
        "within 10 %",
        "predicted / measured time of an iteration",
    } <= {*texts}
    # Each column of panels names its PE counts.
    named = [axes for axes in figure.axes if axes.get_visible() and axes.get_xlabel()]
    assert len(named) == min(panels, 3)


def test_the_legend_has_what_is_drawn():
    def legend(rows):
        return [text.get_text() for text in draw(rows).legends[0].get_texts()]

    assert legend(ROWS) == ["data", "filter", "serial", "80 % interval", "within 10 %"]
    assert legend([row()]) == ["data", "within 10 %"]
    assert "1 run" in draw(ROWS).get_supxlabel()


def test_runs_that_were_fitted_are_told_apart():
    """Hollow, in the legend and the title: a fit meets its own runs."""
    rows = [row(fitted=True), row(p=16), row(p=32, fitted=None), row("filter", p=4, fitted=True)]
    figure = draw(rows)
    pes: dict[bool, set[float]] = {True: set(), False: set()}
    for line in figure.axes[0].get_lines():
        pes[line.get_markerfacecolor() != line.get_color()] |= {*line.get_xdata()}
    assert pes == {True: {8, 4}, False: {16, 32}}
    assert "fitted run" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert "2 of them fitted" in figure.get_suptitle()
    assert "all fitted" in draw([row(fitted=True)]).get_suptitle()


def test_a_picture_of_runs_says_which_the_calibration_has_seen(tmp_path):
    """And so does the table: the shipped calibration has seen some of these, and no others."""
    seen = "resnet50,imagenet-226,data,16,64,0.2251"
    other = ["resnet50,imagenet-226,data,48,64,0.23", "resnet50,imagenet-226,data,16,32,0.12"]
    other += ["resnet50,imagenet,data,16,64,0.23", "resnet152,imagenet-226,data,16,64,0.59"]
    path = tmp_path / "runs.csv"
    head = "model,dataset,strategy,p,samples_per_replica,total_s"
    path.write_text("\n".join([head, seen, *other]) + "\n")
    rows = paradl.compare(path, system="abci")["rows"]
    assert [row["fitted"] for row in rows] == [True, False, False, False, False]
    assert not any(
        row["fitted"] for row in paradl.compare(path, system="abci", calibration="none")["rows"]
    )
    assert "1 of them fitted" in draw(rows).get_suptitle()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.txt", "a.png"),
        ("no/folder.png", "no/folder.png"),
        ("a", "a.png"),
    ],
)
def test_where_nothing_can_be_written(name, message, tmp_path):
    with pytest.raises(InputError, match=message):
        save_figure(draw(ROWS), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_no_formula(tmp_path):
    figure = draw([row(model="$x_{$ \x1b[31m 50 % {of} \\frac")])
    save_figure(figure, tmp_path / "accuracy.png")  # warnings are errors
    assert (tmp_path / "accuracy.png").read_bytes().startswith(PNG)


def test_without_matplotlib(monkeypatch):
    """Nothing but drawing needs it, and drawing says what to do."""
    for name in [name for name in sys.modules if name.startswith("paradl.sweep.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(paradl.RunError, match=r"pip install '.\[plot\]'"):
        _ = xr.Dataset().paradl.plot
