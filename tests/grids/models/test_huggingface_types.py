"""Networks of Hugging Face, counted by Transformers' own modules on the meta device.

tests/data/huggingface.json: configurations of small sizes, and ones that leave out what classes
have by default. parameters: those of the network, or of its part for text, with the biases of
routers that checkpoints hold beside them; macs: of products in a forward pass of 128 tokens, where
Transformers computes the same products (it computes all pairs of positions even where a window
leaves some out). tests/helpers/count_huggingface.py counts them again.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.files.model_types import list_types
from paradl.grids.models.files.template import load_family
from paradl.grids.models.layers import LayerTable
from paradl.grids.models.transformers import read_transformer

DATA = Path(__file__).parents[2] / "data" / "huggingface.json"
CASES: list[dict[str, Any]] = json.loads(DATA.read_text())
TEXT = find("dataset", "pile:length=128", Path())


def read(folder: Path, config: dict[str, Any]) -> tuple[Architecture, LayerTable]:
    """The network of a configuration, and its layers for the samples that it is counted with."""
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    model = find("model", str(path), Path())
    if config["model_type"] == "vit":
        extent = config.get("image_size", 224)
        return model, model.layers_for((3, extent, extent), 1000)
    if config["model_type"] == "whisper":
        return model, model.layers_for((config.get("num_mel_bins", 80), 3000), None)
    return model, model.table(TEXT)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_parameters_and_products_are_those_of_transformers(tmp_path, case):
    _, table = read(tmp_path, case["config"])
    assert table.parameters == case["parameters"]
    if "macs" in case:
        assert table.macs == case["macs"]


def test_many_types_are_counted():
    types = {case["config"]["model_type"] for case in CASES}
    types |= {case["config"].get("text_config", {}).get("model_type") for case in CASES}
    assert len(types) > 90
    # The others have the blocks and defaults of one that is.
    alike = {"camembert", "qwen3_vl_moe_text"}
    assert {*list_types()} <= types | alike


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_layout_divides_every_network_of_text(tmp_path, case):
    """Blocks are found, of as many kinds as the network has."""
    model, table = read(tmp_path, case["config"])
    if model.rank > 1 or case["config"]["model_type"] == "whisper":
        return
    net = read_transformer(model, TEXT)
    config = case["config"].get("text_config", case["config"])
    assert net.blocks >= config.get("num_hidden_layers", 1)
    assert net.parameters == table.parameters


def test_every_setting_of_a_row_is_one_of_its_family():
    known = {
        name
        for family in ("decoder", "t5", "vit", "bert", "whisper")
        for name in load_family(family).settings
    }
    for name, form in list_types().items():
        assert {*form.settings} <= known, name


def test_every_type_stands_in_the_docs():
    page = (Path(__file__).parents[3] / "docs" / "your-model.md").read_text()
    for name in list_types():
        assert f"`{name}`" in page, name
