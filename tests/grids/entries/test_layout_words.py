"""Layouts as people write them: what they are read as, and words that divide nothing."""

from pathlib import Path

import pytest
from short_layouts import read_layout

from paradl.grids.entries.layout_words import parse_layout, write_layout
from paradl.grids.entries.precision import RECIPES
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS
from paradl.kernels.parallelism.layout import explain_broken
from paradl.kernels.work.transformer import Training

# Words that need another one, without and with it.
IDLE = [
    ("tp1 sp", "tp2 sp"),
    ("cp2 pp4 sp recompute=blocks", "tp2 pp4 sp recompute=blocks"),
    ("dp64 shard4", "dp64 zero1 shard4"),
    ("tp8 zero0 shard2", "tp8 zero3 shard2"),
    ("pp4 group8", "pp4 v2 group8"),
    ("pp4 v1 group4", "pp4 v4 group4"),
    ("tp4 schedule=zb1p", "pp4 schedule=zb1p"),
]


@pytest.mark.parametrize(("idle", "used"), IDLE)
def test_words_that_divide_nothing_are_refused(idle, used):
    assert {*used.split()} <= {*write_layout(*parse_layout(used, "")).split()}
    with pytest.raises(InputError, match="leave it out"):
        parse_layout(idle, "")


@pytest.mark.parametrize("zero", range(4))
@pytest.mark.parametrize("tensor", [1, 2])
def test_what_is_written_is_read_back(zero, tensor):
    """As a search writes it: what divides nothing is left out."""
    columns = {name: row.usual for name, row in LAYOUT_COLUMNS.items()} | {"sequence": 1}
    columns |= {"tensor": tensor, "data": 64 // tensor, "zero": zero, "shard": 4 if zero else 0}
    text = write_layout(columns)
    assert parse_layout(text, "") == (columns | {"sequence": int(tensor > 1)}, "1f1b")


@pytest.mark.parametrize(
    ("model", "words"), [("llama2_7b", "no experts"), ("mixtral_8x7b", "8 experts")]
)
def test_networks_without_experts_are_told_so(model, words):
    network = read_transformer(find("model", model, Path()))
    layout, training = read_layout("tp1 ep16 dp64", 64), Training(64, 2048, RECIPES["bf16"])
    ((reason, remedy),) = explain_broken(network, layout, training).items()
    assert words in reason
    assert "no experts" not in remedy
