"""Architectures as written: words, settings, and mistakes."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from paradl.grids.models.architecture import Architecture
from paradl.grids.models.steps import step
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.yamlfile import explain_error


def architecture(*layers: object) -> Architecture:
    return Architecture.from_definition({"name": "net", "rank": 2, "layers": list(layers)})


def test_the_example_of_the_docstring_is_one() -> None:
    assert step.__doc__
    example = step.__doc__.split("\n\n")[2]
    layers = yaml.safe_load(example)["layers"]
    assert architecture(*layers).steps[2].word == "maxpool"


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
        ("rleu", "net: layers.0.rleu:"),
        ({"conv": {"filters": 4, "kernel": 3, "strid": 2}}, "did you mean 'stride'?"),
        ({"conv": {"filters": 0, "kernel": 3}}, "layers.0.conv.filters:"),
        ({"conv": 3}, "net: layers.0.conv.kernel:"),
        ({"conv": {}, "relu": {}}, "expected one word and its settings, got 2: ['conv', 'relu']"),
        ({"fc": "tragets"}, "layers.0.fc.outputs: "),
        ({"maxpool": "big"}, "layers.0.maxpool.kernel.0:"),
        ({"conv": {"filters": 1e300, "kernel": 3}}, "layers.0.conv.filters: unable to parse"),
        ({"conv": {"filters": 1, "kernel": 3, "padding": True}}, "layers.0.conv.padding.0:"),
        ({"conv": {"filters": 1, "kernel": 3, "padding": 2**60}}, "layers.0.conv.padding.0:"),
        ({"conv": {"filters": 1, "kernel": [3] * 10**5}}, "tuple should have at most 3 items"),
        ({"relu": "a" * 201}, "layers.0.relu.name:"),
        ({str(n): n for n in range(10**4)}, "got 10000: ['0', '1', '2', '3', '4', '5', ...]"),
        (7, "layers.0:"),
    ],
)
def test_mistakes(layer: Any, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        architecture(layer)
    assert message in str(explain_error(error.value, "net", Architecture))


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"shape": [3, 8]}, "profiles.0.shape: net takes samples of 2 spatial dimensions, got 1"),
        ({"shape": [3, 2, 2]}, "profiles.0.shape: conv1:"),
        ({"seconds": 1e308}, "profiles.0.seconds:"),
        ({"seconds": 0}, "profiles.0.seconds:"),
    ],
)
def test_a_profile_that_cannot_have_been_measured(profile: Any, message: str) -> None:
    usual = {"device": "v100", "shape": [3, 8, 8], "seconds": "3 ms"}
    layers = [{"conv": {"filters": 4, "kernel": 3}}]
    net = {"name": "net", "rank": 2, "layers": layers}
    assert Architecture.from_definition(net | {"profiles": [usual]}).profiles[0].seconds == 3e-3
    with pytest.raises(ValidationError) as error:
        Architecture.from_definition(net | {"profiles": [usual | profile]})
    assert message in str(explain_error(error.value, "net", Architecture))


def test_more_profiles_than_anybody_measures() -> None:
    profile = {"device": "v100", "shape": [3, 8, 8], "seconds": 1}
    net = {"name": "net", "rank": 2, "layers": ["relu"], "profiles": [profile] * 17}
    with pytest.raises(ValidationError, match="at most 16 items"):
        Architecture.from_definition(net)


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"stages": [10**9]}, "expected a whole number from 0 to 1,000, got 1000000000 of"),
        ({"stages": [1], "width": 2**53}, "a number beyond 2^53"),
        ({"stages": [1], "groups": 0}, "conv.groups:"),
        ({"stages": 3}, "cannot compute 'len(stages)'"),
        ({}, "family: stages:"),
        ({"stages": [1], "widht": 3}, "family: widht:"),
        ({"name": "x" * 10**6}, "family:"),
        ({"name": "./net.yaml"}, "family:"),
    ],
)
def test_a_family_of_absurd_size(family: Any, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        Architecture.from_definition(
            {"name": "net", "rank": 2, "family": {"name": "resnet"} | family}
        )
    messages = str(explain_error(error.value, "net", Architecture))
    assert message in messages
    assert len(messages) < 1000


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["flatten"], "net:"),
        (["relu"] * 5001, "net:"),
        ([{"fc": 2**53}] * 3, "net:"),
        ([{"adaptive_avgpool": 2**50}], "net:"),
        ([{"relu": "a"}, {"relu": "a"}], "net:"),
    ],
)
def test_a_network_that_no_memory_holds(steps: list[object], message: str) -> None:
    with pytest.raises(InputError) as error:
        architecture(*steps).layers_for((3, 224, 224), targets=10)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("form", [{}, {"layers": ["relu"], "family": {"name": "inception"}}])
def test_either_layers_or_a_family(form: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="either 'layers' or 'family'"):
        Architecture.from_definition({"name": "net", "rank": 2, **form})
