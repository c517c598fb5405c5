"""Blocks of transformers, derived from a network's layers."""

from pathlib import Path

import numpy as np
import pytest

import paradl
from paradl.grids.entries.precision import RECIPES
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import InputError
from paradl.kernels.work.block_memory import measure_memory
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training

IMAGES = find("dataset", "imagenet", Path())
NAMES = (
    *("gpt3_175b", "llama2_7b", "llama2_70b", "llama3_405b", "llama3_8b"),
    *("mixtral_8x7b", "qwen3_30b_a3b", "deepseek_v3", "t5_11b", "vit_l_16"),
)


def read(name):
    model = find("model", name, Path())
    assert isinstance(model, Architecture)
    assert model.customary
    return read_transformer(model, find("dataset", model.customary, Path()))


@pytest.mark.parametrize("name", NAMES)
def test_blocks_hold_all_parameters(name):
    """With unpadded tables, which a layout pads."""
    net = read(name)
    held = [net.front, net.back, *(net.kinds[kind] for kind in net.order)]
    tables = (1 if net.ties else 2) * net.vocabulary * net.hidden
    sizes = (weights.matrix + weights.biases for block in held for weights in block.weights)
    assert sum(sizes) + tables == net.parameters


@pytest.mark.parametrize(
    ("name", "blocks", "kinds"),
    [("llama2_70b", 80, 1), ("deepseek_v3", 61, 2), ("vit_l_16", 24, 1), ("t5_11b", 48, 4)],
)
def test_blocks_that_are_alike_stand_once(name, blocks, kinds):
    net = read(name)
    assert (net.blocks, len(net.kinds)) == (blocks, kinds)


def measure(net, length, *rows):
    return measure_memory(net, Layouts.from_names(rows), Training(8, length, RECIPES["bf16"]))


def test_a_vision_transformer():
    """Korthikanti's 34 without masks, for 14 x 14 patches and a class token; 304 M parameters."""
    net = read("vit_l_16")
    parts, _ = measure(net, net.length, {"micro": 8})
    patches, tokens = IMAGES.shape[1] // 16 * (IMAGES.shape[2] // 16), 8 * net.length
    assert net.length == patches + 1
    assert net.parameters == 304_326_632
    assert parts["weights"] == 2 * net.parameters
    assert parts["activations"] == 24 * 32 * tokens * 1024
    assert parts["embedding"] == 2 * 8 * np.prod(IMAGES.shape)
    assert parts["logits"] == 2 * 2 * tokens * 1024


def test_turns_of_a_repeat_are_blocks(tmp_path):
    """As docs/your-model.md writes a vision transformer, without tensor-parallel layers."""
    path = tmp_path / "small_vit.yaml"
    path.write_text(
        "name: small_vit\ntitle: A test\nsource: this test\nrank: 2\ncustomary: imagenet\nlayers:\n"
        "  - conv: {filters: 192, kernel: 16, stride: 16}\n  - to_sequence\n  - positions\n"
        "  - repeat:\n      times: 6\n      layers:\n"
        "        - residual: [layernorm, {attention: 3}]\n"
        "        - residual: [layernorm, {linear: 768}, gelu, {linear: 192}]\n"
        "  - first_token\n  - fc: targets\n"
    )
    net = read_transformer(find("model", str(path), Path()), find("dataset", "imagenet", Path()))
    assert net.order == (0,) * 6
    system = "dgx-h100:precision=bf16"
    answer = paradl.predict(
        str(path), "data+pipeline:pipeline=3,micro=8", 12, 32, dataset="imagenet", system=system
    )
    assert answer["feasible"]
    assert answer["obstacles"] == []


def test_an_encoder_and_a_decoder():
    """T5-11B by hand: decoder blocks have a second attention, to the encoder's output."""
    h, inner, f, u = 1024, 128 * 128, 65536, 2 * 512
    net = read("t5_11b")
    parts, _ = measure(net, 512, {"micro": 2}, {"tensor": 8, "micro": 2, "sequence": 1})
    padded = 32768  # from 32,128, to a multiple of 128 x 8
    norms, attention, mlp = 2 * 2 * h, 2 * 4 * inner, 2 * f
    encoder, decoder = 2 * norms + attention + mlp, 3 * norms + 2 * attention + mlp
    # The encoder's last norm reads one tensor, and gives another to all blocks of the decoder.
    assert parts["activations"][0] == u * (24 * (encoder + decoder) + norms + 8)
    wide = u * 24 * (3 * attention + 2 * mlp) / 8
    assert parts["activations"][1] == wide + u * ((24 * 5 + 1) * norms / 8 + 8)
    assert parts["logits"][0] == u * (2 * 2 * h + 4 * 32128 // 128 * 128)
    assert parts["logits"][1] == u * (2 * 2 * h + 4 * padded) / 8
    assert net.parameters == 11_307_321_344


def test_a_stage_of_the_decoder_holds_what_the_encoder_gives():
    """With two stages both have the table of words; the second reads both streams."""
    net = read("t5_11b")
    parts, stages = measure(net, 512, {"pipeline": 2})
    table, inner = 32128 * 1024, 128 * 128
    attention = 4 * 1024 * inner
    block = 2 * attention + 2 * 1024 * 65536 + 3 * 1024
    # A table of distances, and the norms of encoder and decoder.
    held = 24 * block + table + 32 * 128 + 2 * 1024
    assert stages.tolist() == [1]
    assert parts["weights"][0] == 2 * held


@pytest.mark.parametrize("name", ["resnet50", "cosmoflow", "gnmt", "big_lstm"])
def test_a_network_without_blocks(name):
    with pytest.raises(InputError, match="no blocks of attention"):
        read(name)
