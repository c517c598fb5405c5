"""docs/your-model.md: every example can be read, and every word has one."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from paradl.grids.models.architecture import Architecture, read_architecture
from paradl.grids.models.layers import LayerTable
from paradl.grids.models.steps.step import Step
from paradl.grids.reading.yamlfile import read_nodes

PAGE = (Path(__file__).parents[2] / "docs" / "your-model.md").read_text()
EXAMPLES: list[Any] = [
    read_nodes(block)[1] for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
]
FRAGMENTS = [example for example in EXAMPLES if isinstance(example, list)]
WHOLE = {example["name"]: example for example in EXAMPLES if isinstance(example, dict)}


def infer(layers: list[object]) -> LayerTable:
    """Return the layers of steps on 128 channels of 28 x 28."""
    net = Architecture.from_definition({"name": "page", "rank": 2, "layers": layers})
    return net.layers_for((128, 28, 28), 1000)


@pytest.mark.parametrize("layers", FRAGMENTS, ids=lambda layers: str(layers[0])[:30])
def test_an_example_is_read(layers: list[object]) -> None:
    views = ("flatten", "to_sequence")
    steps = [layer for layer in layers if layer not in views and "read" not in str(layer)]
    assert len(infer(layers)) >= len(steps)


def test_every_word_has_an_example() -> None:
    words = re.findall(r"[a-z_0-9]+", " ".join(map(str, EXAMPLES)))
    assert set(Step.model_fields) <= set(words)


def test_every_word_stands_in_a_table() -> None:
    tables = "".join(line for line in PAGE.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`([a-z_0-9]+)`", tables))
    assert set(Step.model_fields) - {"free"} <= named


def test_every_setting_is_stated() -> None:
    result = set(re.findall(r"`([a-z_0-9]+)`", PAGE))
    of_words = [get_args(field.annotation)[0] for field in Step.model_fields.values()]
    assert {name for word in of_words for name in word.model_fields} <= result


def test_the_small_mobilenet() -> None:
    """Weights by hand: of each convolution and normalisation, the gate and the classifier."""
    net = Architecture.from_definition(WHOLE["small_mobilenet"])
    layers = net.layers_for((3, 224, 224), 1000)
    first = 27 * 16 + 2 * 16
    second = 16 * 96 + 9 * 96 + 96 * 24 + 2 * (96 + 96 + 24)
    third = 24 * 144 + 9 * 144 + 144 * 24 + 2 * (144 + 144 + 24)
    gate = 144 * 6 + 6 + 6 * 144 + 144
    last = 24 * 1280 + 2 * 1280 + 1280 * 1000 + 1000
    assert layers.parameters == first + second + third + gate + last


def test_the_small_vision_transformer() -> None:
    """Weights by hand: patches, tokens, six blocks, and the layers after them."""
    layers = Architecture.from_definition(WHOLE["small_vit"]).layers_for((3, 224, 224), 1000)
    c, t, h = 192, 14 * 14 + 1, 768
    front = 3 * 16 * 16 * c + c + c + t * c
    block = 2 * (2 * c) + 4 * (c * c + c) + c * h + h + h * c + c
    assert layers.parameters == front + 6 * block + 2 * c + 1000 * c + 1000
    products = t * (4 * c * c + 2 * c * h) + 2 * t * t * c
    assert layers.macs == 14 * 14 * 3 * 16 * 16 * c + 6 * products + 1000 * c


def test_the_small_resnet() -> None:
    """Weights by hand: a stem, seven blocks of two convolutions, three projections."""
    layers = read_architecture(WHOLE["small_resnet"], "page", Path()).layers_for((3, 64, 64), 10)
    blocks = ((32, 32), (32, 32), (32, 64), (64, 64), (64, 128), (128, 128), (128, 128))
    convolutions = [9 * f * (c + f) + 4 * f for c, f in blocks]
    projections = [c * f + 2 * f for c, f in (blocks[0], blocks[2], blocks[4])]
    stem, last = 49 * 3 * 32 + 2 * 32, 128 * 10 + 10
    assert layers.parameters == stem + sum(convolutions) + sum(projections) + last
    assert "stage3.2.conv2" in layers.names


def test_the_small_translator() -> None:
    """Weights by hand: one table, two LSTMs, attention and a classifier of twice the features."""
    layers = Architecture.from_definition(WHOLE["small_translator"]).layers_for((2, 22), 32_320)
    h, words = 256, 32_320
    lstm = 4 * h * (h + h) + 2 * 4 * h
    attention = 2 * h * h + h
    assert layers.parameters == words * h + 2 * lstm + attention + 2 * h * words + words
