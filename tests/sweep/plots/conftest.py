"""Every picture's texts are apart from each other and inside; a small store to draw."""

from collections.abc import Callable
from typing import Any

import pytest

import paradl
from paradl.grids.grid import Grid
from paradl.sweep.engine.run import read_grid


@pytest.fixture(scope="session")
def machine_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of the machine oracle without terms."""
    url = str(tmp_path_factory.mktemp("machine") / "cube.zarr")
    axes = {
        "model": "alexnet",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": "data",  # each more compiles for seconds
        "pe": [1, 2, 4],
        "batch": 32,
    }
    paradl.run({"axes": axes}, url)
    return url


@pytest.fixture(scope="session")
def many_counts() -> Grid:
    """A design space of one strategy at 40 PE counts."""
    axes = {"model": "alexnet", "dataset": "imagenet", "system": "abci", "strategy": "data"}
    return read_grid({"oracle": "paper", "axes": {**axes, "pe": {"range": [1, 40]}, "batch": 8}})


@pytest.fixture(scope="session")
def layouts() -> Grid:
    """A design space of one transformer on 64 and 128 PEs, in 24 layouts."""
    rows = {"tensor": [1, 2, 4, 8], "pipeline": [1, 2, 4], "micro": [1, 2]}
    axes = {
        "model": "llama2_7b",
        "dataset": "pile:length=4096",
        "system": "dgx-h100:precision=bf16",
        "strategy": "data+tensor+pipeline",
        "pe": [64, 128],
        "batch": [128, 256],
        "layout": {"product": rows},
    }
    return read_grid({"scaling": "strong", "axes": axes})


@pytest.fixture
def expect_legible() -> Callable[[Any], list[str]]:
    """Checks a figure; gives its texts."""
    return check_texts


def check_texts(figure: Any) -> list[str]:
    """No text lies on another or reaches beyond the figure; gives all texts that are shown."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    shown = [label for label in figure.findobj(Text) if label.get_visible() and label.get_text()]
    # Ticks beyond the ends of an axis are there, and not drawn.
    hidden = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for label in _list_beyond(axis)
    } | {text for axes in figure.axes if not axes.get_visible() for text in axes.findobj(Text)}
    shown = [label for label in shown if label not in hidden]
    boxes = [label.get_window_extent().extents for label in shown]
    width, height = figure.bbox.size
    for text, (left, low, right, high) in zip(shown, boxes, strict=True):
        inside = left >= -1 and low >= -1 and right <= width + 1 and high <= height + 1
        assert inside, (text.get_text(), left, low, right, high)
    for one, box in enumerate(boxes):
        for other in range(one):
            x = min(box[2], boxes[other][2]) - max(box[0], boxes[other][0])
            y = min(box[3], boxes[other][3]) - max(box[1], boxes[other][1])
            # Boxes are of whole lines: letters without descenders may be closer.
            overlap = x > 1 and y > 0.15 * (box[3] - box[1])
            assert not overlap, (shown[one].get_text(), shown[other].get_text())
    return [label.get_text() for label in shown]


def _list_beyond(axis: Any) -> list[Any]:
    """Labels of ticks outside of what the axis shows."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [
        label
        for tick in ticks
        for label in (tick.label1, tick.label2)
        if not low <= tick.get_loc() <= high
    ]
