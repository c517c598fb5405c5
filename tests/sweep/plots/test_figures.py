from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.plots.figures import add_legend, format_tick, make_axes, save_figure, scale_counts
from paradl.sweep.plots.looks import use_style


@pytest.mark.parametrize(
    ("counts", "ends", "size"),
    [
        ((1, 1024), (), "slide"),
        ((3, 100), (), "paper"),
        ((5, 7), (5, 7), "paper"),
        ((8, 8), (8,), "slide"),
        ((96, 128), (96, 128), "paper"),
    ],
)
def test_ticks_are_powers_of_two_or_the_ends(counts, ends, size, expect_legible):
    with use_style(size):
        figure, axes = make_axes("")
        axes.plot(counts, [1, 2])
        scale_counts(axes, np.array(counts, float))
    texts = expect_legible(figure)
    low, high = axes.get_xlim()
    shown = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert {f"{tick:,.0f}" for tick in shown} <= {*texts}
    if ends:  # which have no two powers of two between them
        assert shown == [*ends]
    else:
        assert len(shown) > 1
        assert (np.log2(shown) % 1 == 0).all()


@pytest.mark.parametrize("name", ["picture.png", "picture.svg"])
def test_a_picture_is_written_at_once(name, tmp_path, monkeypatch):
    """A failure while drawing leaves what was there before, and nothing else."""
    with use_style("paper"):
        figure, _ = make_axes("")
    save_figure(figure, tmp_path / name)
    before = (tmp_path / name).read_bytes()
    monkeypatch.setattr(figure, "savefig", partial(_fail, figure.savefig))
    with pytest.raises(InputError, match=name):
        save_figure(figure, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == before


def _fail(save: Any, path: Any, **settings: Any) -> None:
    save(path, **settings)
    raise OSError(28, "No space left on device")


def test_a_legend_is_beside_the_axes_or_below_narrow_ones(expect_legible):
    for size in ("paper", "slide"):
        with use_style(size):
            figure, axes = make_axes("title", "a note")
            lines = [axes.plot([1, 2], label=f"name {n}\nbelow")[0] for n in range(5)]
            add_legend(figure, lines)
        texts = expect_legible(figure)
        assert {line.get_label() for line in lines} <= {*texts}
        box, inside = figure.legends[0].get_window_extent(), axes.get_window_extent()
        assert box.y1 < inside.y0 if size == "paper" else box.x0 > inside.x1


@pytest.mark.parametrize(
    ("value", "text"),
    [(1000, "1,000"), (1, "1"), (2.5, "2.5"), (5e6, "5,000,000"), (0.05, "0.05"), (2e7, "2e+07")],
)
def test_numbers_are_plain(value, text):
    assert format_tick(value) == text


@pytest.mark.parametrize("letters", [1, 4, 8, 11])
def test_lines_break_at_no_equals_sign_and_no_unit(letters, expect_legible):
    title = "x" * letters * 4 + " on abci, inter bandwidth = 12.5 GB/s, p = 64, b = 8"
    with use_style("paper"):
        figure, _ = make_axes(title, "not drawn: serial")
    expect_legible(figure)
    suptitle: Any = figure.get_suptitle()
    kept = suptitle.split(" ")
    assert not {"=", "GB/s", "64,", "8"} & {*kept}


def test_a_notebook_shows_a_picture(machine_url) -> None:
    """By what its kernel formats results with, which knows of figures where pyplot is imported."""
    formatters = pytest.importorskip("IPython.core.formatters")
    figure = paradl.open_dataset(machine_url).paradl.plot.scaling()
    shown, _ = formatters.DisplayFormatter().format(figure)
    assert imread(BytesIO(shown["image/png"])).shape[1] == round(figure.get_figwidth() * figure.dpi)
