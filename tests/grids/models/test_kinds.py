"""Kinds of layers: what passes and groups do with each."""

import pytest

from paradl.grids.models.architecture import Architecture
from paradl.grids.models.kinds import (
    BY_ARGUMENT,
    BY_VALUE,
    KIND_OF_STEP,
    KINDS,
    LayerKind,
)
from paradl.grids.models.steps.step import Step

CONVOLUTIONS = {"conv", "transposed_conv"}


def test_how_groups_split_a_kind() -> None:
    products = {"linear", "matmul", "recurrent", "sampled_softmax", "scan"}
    multiplying = {name for name, kind in KINDS.items() if kind.multiplies}
    assert multiplying == {*CONVOLUTIONS, "fc", "free", *products}
    divided = {name for name, kind in KINDS.items() if kind.divides}
    assert divided == {*CONVOLUTIONS, "linear"}
    together = {"matmul", "softmax", "embedding", "sampled_softmax", "recurrent", "gates", "scan"}
    assert {name for name, kind in KINDS.items() if kind.whole} == together
    windowed = {name for name, kind in KINDS.items() if kind.windowed}
    assert windowed == {*CONVOLUTIONS, "maxpool", "avgpool"}
    assert {name for name, kind in KINDS.items() if kind.convolves} == CONVOLUTIONS
    assert {name for name, kind in KINDS.items() if kind.opaque} == {"free"}


def test_what_the_backward_pass_reads_of_a_kind() -> None:
    of_images = {*CONVOLUTIONS, "fc", "free", "norm", "multiply", *BY_ARGUMENT}
    of_sequences = {"linear", "matmul", "embedding", "sampled_softmax", "gates"}
    of_sequences |= {"rmsnorm", "gated_product", "combine", "scan", "short_conv", "lora_sum"}
    keep_input = {name for name, kind in KINDS.items() if kind.keeps_input}
    assert keep_input == of_images | of_sequences
    keep_output = {name for name, kind in KINDS.items() if kind.keeps_output}
    assert keep_output == {*BY_VALUE, "softmax", "recurrent", "gates"}
    assert {name for name, kind in KINDS.items() if kind.carried} == {"gates"}
    remembered = {name: kind.remembered for name, kind in KINDS.items() if kind.remembered}
    assert remembered == {"maxpool": 8, "dropout": 1}


NO_LAYER = {"flatten", "read", "repeat", "to_sequence", "first_token"}
SEVERAL_LAYERS = {"residual", "multiply", "concat", "side", "attention", "lstm"}
SEVERAL_LAYERS |= {"latent_attention", "gated", "experts", "logits"}
SEVERAL_LAYERS |= {"state_space", "linear_attention", "short_conv"}


def test_every_word_of_a_kind_is_a_step() -> None:
    assert set(KIND_OF_STEP) == set(Step.model_fields) - NO_LAYER - SEVERAL_LAYERS


WITH_SETTINGS = {"embedding", "class_token", "positions"}
PLAIN = [
    (word, kind)
    for word, kind in KIND_OF_STEP.items()
    if kind.elementwise and word not in WITH_SETTINGS
]


@pytest.mark.parametrize(("word", "kind"), PLAIN)
def test_a_plain_word_makes_a_layer_of_its_kind(word: str, kind: LayerKind) -> None:
    net = Architecture.from_definition({"name": "net", "rank": 2, "layers": [{word: "a"}]})
    layers = net.layers_for((3, 8, 9), targets=1)
    assert (layers.names, layers.kinds) == (("a",), (kind.name,))
    assert layers.flops[0] == layers.x[0] == layers.y[0] == 3 * 8 * 9
