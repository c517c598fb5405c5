"""Timelines are as long as the predicted iteration, and stages run what the schedule says."""

from typing import Any

import numpy as np
import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.cells.design_space import SpaceValues, make_grid
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.passes import REST
from paradl.sweep.plots.slices import open_slice
from paradl.sweep.plots.timeline import describe_timeline, draw_timeline

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_timeline

LLAMA = "data+tensor+pipeline:tensor=8,pipeline=4,micro=1,recompute=blocks,zero=1"


def make_llama(strategy: str, batch: int = 32) -> Any:
    options = SpaceValues(
        model="llama2_7b",
        dataset="pile:length=4096",
        system="dgx-h100:precision=bf16",
        strategy=strategy,
        pe=64,
        batch=batch,
        settings={"scaling": "strong"},
    )
    return make_grid(options)


def make_vgg(strategy: str) -> Any:
    return make_grid(SpaceValues("vgg16", 4, 64, "imagenet", "dgx-h100", strategy))


@pytest.mark.parametrize(
    "grid",
    [
        make_vgg("pipeline:segments=8"),
        make_llama(LLAMA),
        make_llama(f"{LLAMA},chunks=2"),
        make_llama(f"{LLAMA},schedule=gpipe"),
        make_llama(f"{LLAMA},schedule=zb1p"),
    ],
)
def test_a_timeline_is_as_long_as_the_iteration(grid):
    timeline = describe_timeline(grid)
    expected = open_slice(grid, None).paradl.iteration_time.item()
    assert timeline.end == pytest.approx(expected, rel=1e-6)
    busy = sum(span.end - span.start for span in timeline.spans if span.kind != REST)
    assert busy <= timeline.end * len(timeline.lanes)
    assert len(timeline.lanes) == 4


def test_passes_are_seen_however_long_the_rest():
    """What follows the passes is cut off, and the note says until when it lasts."""
    space = SpaceValues("resnet50", 8, 32, "imagenet", "abci", "pipeline:segments=16")
    timeline = describe_timeline(make_grid(space))
    passes = max(span.end for span in timeline.spans if span.kind != REST)
    assert timeline.end == pytest.approx(4 * passes)
    assert "419.3 ms" in timeline.note


def test_bubbles_are_those_of_the_kernels():
    timeline = describe_timeline(make_llama(LLAMA))
    passes = [span for span in timeline.spans if span.kind != REST]
    end = max(span.end for span in passes)
    busy = sum(span.end - span.start for span in passes) / 4
    # (p - 1) / (m + p - 1) of m = 32 / 2 replicas micro-batches.
    assert 1 - busy / end == pytest.approx(3 / (16 + 3), rel=1e-6)


@pytest.mark.parametrize(
    ("strategy", "batch"),
    [("data+tensor:tensor=8,micro=1", 32), (f"{LLAMA},schedule=zbv", 32), (LLAMA, 2**14)],
)
def test_what_has_no_picture_is_refused(strategy, batch):
    with pytest.raises(InputError, match="selection"):
        describe_timeline(make_llama(strategy, batch))


def test_a_forbidden_cell_is_refused(layouts):
    with pytest.raises(InputError, match="layout"):
        describe_timeline(layouts, {"pe": 64, "batch": 128})
    with pytest.raises(NothingFeasibleError):
        describe_timeline(make_vgg("pipeline:segments=128"))


def test_texts_are_legible(expect_legible):
    timeline = describe_timeline(make_llama(f"{LLAMA},schedule=zb1p"))
    figure = draw(timeline, "paper")
    texts = expect_legible(figure)
    kinds = list(dict.fromkeys(span.kind for span in timeline.spans))
    assert {*kinds} == {text.get_text() for text in figure.legends[0].get_texts()}
    assert {*timeline.lanes} <= {*texts}
    assert "[ms]" in figure.axes[0].get_xlabel() or "[s]" in figure.axes[0].get_xlabel()


def test_spans_are_drawn_where_they_are():
    timeline = describe_timeline(make_vgg("pipeline:segments=2"))
    axes = draw(timeline).axes[0]
    boxes = [path.get_extents() for group in axes.collections for path in group.get_paths()]
    drawn = sorted((box.x0, box.x1, round(box.intervaly.mean())) for box in boxes)
    expected = sorted((span.start, span.end, span.lane) for span in timeline.spans)
    np.testing.assert_allclose(drawn, expected, atol=1e-12)
