"""Of a network with blocks, layouts answer for `serial`, `data` and pipelines, in any words."""

from typing import Any

import numpy as np
import pytest

from paradl.grids.grid import Grid, read_grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.cells.memory_cube import compute_cells

LAID = ("serial", "data", "pipeline", "data+pipeline:group=2")
DIVIDED = ("data+filter", "spatial+pipeline:spatial=2", "data+placement:group=2")
CELL: dict[str, Any] = {"dataset": "imagenet", "system": "dgx-h100:precision=bf16", "pe": [8]}


def make_grid(model: Any, strategy: Any, axes: dict[str, Any] | None = None, **spec: Any) -> Grid:
    named = {"model": model, "strategy": strategy, "batch": [32], **CELL, **(axes or {})}
    return read_grid({"axes": named, "outputs": ["comp_time", "memory", "group_size"], **spec})


@pytest.mark.parametrize(
    ("model", "oracle", "layouts"),
    [("vit_b_16", "machine", LAID), ("resnet50", "machine", ()), ("vit_b_16", "paper", ())],
)
def test_blocks_answer_for_what_leaves_layers_whole(model, oracle, layouts):
    placed = () if oracle == "paper" else DIVIDED
    grid = make_grid(model, [*LAID, *(placed or DIVIDED[:1])], oracle=oracle)
    assert tuple(one.label for one in grid.resolved if one.of_blocks) == layouts


def test_blocks_with_convolutions_stay_layers():
    """No layout computes them: they would take no time."""
    conv = {"conv": {"filters": 64, "kernel": 3, "padding": 1}}
    layers = [
        {"conv": {"filters": 64, "kernel": 16, "stride": 16}},
        {"residual": {"name": "h0.conv", "body": [conv]}},
        "to_sequence",
        {"residual": {"name": "h1.attention", "body": [{"attention": {"heads": 8}}]}},
        "first_token",
        {"fc": {"outputs": "targets"}},
    ]
    net = {"name": "both", "title": "Both", "source": "tests", "rank": 2, "layers": layers}
    assert not any(one.of_blocks for one in make_grid(net, [*LAID]).resolved)
    with pytest.raises(InputError, match="both has no blocks of attention"):
        make_grid(net, "data+tensor:tensor=2")


@pytest.mark.parametrize("name", ["group", "pipeline"])
def test_axes_are_the_settings_of_a_pipeline(name):
    swept = make_grid("vit_b_16", "data+pipeline", {name: [2, 4], "segments": [2, 8]})
    settings = [f"data+pipeline:group={p},segments={m}" for p in (2, 4) for m in (2, 8)]
    cells, stated = compute_cells(swept), compute_cells(make_grid("vit_b_16", settings))
    for output in ("comp_time", "memory", "group_size"):
        by_axes = cells[output].squeeze().transpose(name, "segments").values
        np.testing.assert_array_equal(by_axes.ravel(), stated[output].values.ravel())


def test_a_pipeline_takes_the_pes_of_a_node_or_all():
    grid = make_grid("vit_b_16", ["data+pipeline", "pipeline"], {"pe": [4, 8, 16]})
    group = compute_cells(grid)["group_size"].squeeze().transpose("strategy", "pe").values
    assert group.tolist() == [[4, 8, 8], [4, 8, 16]]


def test_layers_take_one_stage_of_zero():
    assert make_grid("vit_b_16", "data", {"zero": [0, 1]}).layouts
    for taker in ("data", "data:micro=8"):
        with pytest.raises(InputError, match=rf"^axes\.zero: '{taker}' .*'data:zero=1'"):
            make_grid("resnet50", ["data:zero=2", taker], {"zero": [0, 1]})


def test_micro_batches_of_layers_are_passes_or_segments():
    """Layers take the words of layouts that do not divide blocks."""
    ways = {
        ("data:micro=8", 32, 1): ("data", 8, 4),
        ("data+tensor:tensor=1,micro=8", 32, 1): ("data", 8, 4),
        ("data+pipeline:pipeline=4,micro=8", 32, 2): (
            "data+pipeline:group=4,segments=4,schedule=1f1b",
            *(32, 2),
        ),
    }
    for cases in ways.items():
        answers = [
            compute_cells(
                make_grid(
                    "resnet50", strategy, {"batch": [batch]}, parameters={"accumulate": flushes}
                )
            )
            for strategy, batch, flushes in cases
        ]
        for name in ("comp_time", "memory"):
            one, other = (cells[name].values.ravel() for cells in answers)
            np.testing.assert_array_equal(one, other)
