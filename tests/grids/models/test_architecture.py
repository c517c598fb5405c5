"""Architectures as they are written: words, settings, and mistakes."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from grids.models import steps
from grids.models.architecture import Architecture
from grids.yamlfile import explain


def architecture(*layers: object) -> Architecture:
    return Architecture.from_definition({"name": "net", "rank": 2, "layers": list(layers)})


def test_the_example_of_the_docstring_is_one() -> None:
    assert steps.__doc__
    example = steps.__doc__.split("\n\n")[2]
    layers = yaml.safe_load(example)["layers"]
    assert architecture(*layers).steps[3].word == "maxpool"


@pytest.mark.parametrize(
    ("short", "written_out"),
    [
        ("relu", {"relu": {}}),
        ({"relu": None}, {"relu": {}}),
        ({"fc": 10}, {"fc": {"outputs": 10, "bias": True}}),
        ({"maxpool": 2}, {"maxpool": {"kernel": [2], "ceil": False, "padding": [0]}}),
        ({"maxpool": [2, 3]}, {"maxpool": {"kernel": [2, 3]}}),
        ({"side": ["relu"]}, {"side": {"layers": [{"relu": {}}]}}),
        ({"residual": ["relu"]}, {"residual": {"body": ["relu"], "shortcut": []}}),
    ],
)
def test_a_bare_value_is_the_first_setting(short: object, written_out: object) -> None:
    assert architecture(short) == architecture(written_out)


def test_definition_rebuilds_it() -> None:
    conv = {"filters": 4, "kernel": 3, "padding": "same"}
    network = architecture({"conv": conv}, {"concat": [["relu"], []]}, {"fc": "targets"})
    assert Architecture.from_definition(network.definition()) == network


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("rleu", "net: layers.0.rleu: unknown key; did you mean 'relu'?"),
        ({"conv": {"filters": 4, "kernel": 3, "strid": 2}}, "did you mean 'stride'?"),
        ({"conv": {"filters": 0, "kernel": 3}}, "layers.0.conv.filters: input should be greater"),
        ({"conv": 3}, "net: layers.0.conv.kernel: this key is missing"),
        ({"conv": {}, "relu": {}}, "expected one word and its settings, got 2: ['conv', 'relu']"),
        ({"fc": "tragets"}, "layers.0.fc.outputs: "),
        ({"maxpool": "big"}, "layers.0.maxpool.kernel: expected a list, got 'big'"),
        (7, "layers.0: expected a mapping, got 7"),
    ],
)
def test_mistakes(layer: Any, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        architecture(layer)
    assert message in str(explain(error.value, "net", Architecture))


@pytest.mark.parametrize("form", [{}, {"layers": ["relu"], "family": {"name": "inception"}}])
def test_either_layers_or_a_family(form: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="either 'layers' or 'family'"):
        Architecture.from_definition({"name": "net", "rank": 2, **form})
