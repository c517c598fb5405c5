"""docs/your-model.md: every example is read as it stands, and every word has one."""

import re
from pathlib import Path
from typing import get_args

import pytest

from grids.models.architecture import Architecture
from grids.models.layers import LayerTable
from grids.models.steps import Step
from grids.reading.plainyaml import read_nodes

PAGE = (Path(__file__).parents[3] / "docs" / "your-model.md").read_text()
EXAMPLES = [read_nodes(each)[1] for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
FRAGMENTS = [each for each in EXAMPLES if isinstance(each, list)]
(WHOLE,) = [each for each in EXAMPLES if isinstance(each, dict)]


def infer(layers: list[object]) -> LayerTable:
    """The layers of steps that take 128 channels of 28 x 28."""
    net = Architecture.from_definition({"name": "page", "rank": 2, "layers": layers})
    return net.layers_for((128, 28, 28), 1000)


@pytest.mark.parametrize("layers", FRAGMENTS, ids=lambda layers: str(layers[0])[:30])
def test_an_example_is_read(layers: list[object]) -> None:
    assert len(infer(layers)) >= len([each for each in layers if each != "flatten"])


def test_every_word_has_an_example() -> None:
    words = re.findall(r"[a-z_0-9]+", " ".join(map(str, EXAMPLES)))
    assert set(Step.model_fields) <= set(words)


def test_every_word_stands_in_a_table() -> None:
    tables = "".join(line for line in PAGE.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`([a-z_0-9]+)`", tables))
    assert set(Step.model_fields) - {"free"} <= named


def test_every_setting_is_told() -> None:
    told = set(re.findall(r"`([a-z_0-9]+)`", PAGE))
    of_words = [get_args(field.annotation)[0] for field in Step.model_fields.values()]
    assert {name for each in of_words for name in each.model_fields} <= told


def test_the_small_mobilenet() -> None:
    """Weights by hand: of each convolution and normalisation, of the gate and of the classifier."""
    net = Architecture.from_definition(WHOLE)
    layers = net.layers_for((3, 224, 224), 1000)
    first = 27 * 16 + 2 * 16
    second = 16 * 96 + 9 * 96 + 96 * 24 + 2 * (96 + 96 + 24)
    third = 24 * 144 + 9 * 144 + 144 * 24 + 2 * (144 + 144 + 24)
    gate = 144 * 6 + 6 + 6 * 144 + 144
    last = 24 * 1280 + 2 * 1280 + 1280 * 1000 + 1000
    assert layers.parameters == first + second + third + gate + last
