"""What files state and the oracle does not use: never in silence."""

from typing import Any

import pytest

from grids.grid import Grid
from grids.library import find_catalogued
from grids.spec import validate_spec


def define(kind: Any, name: str, **changes: object) -> dict[str, Any]:
    entry = find_catalogued(kind, name)
    assert entry is not None
    return entry.definition() | {"name": "mine"} | changes


def list_warnings(
    model: object = "vgg16", system: object = "dgx-a100", **keys: object
) -> list[str]:
    axes = {"model": [model], "system": [system], "dataset": "imagenet", "strategy": "data"}
    spec = {"axes": {**axes, "pe": 4, "batch": 32}, **keys}
    return Grid.from_spec(validate_spec(spec, "spec")).warnings


@pytest.mark.parametrize("oracle", ["machine", "paper"])
def test_of_the_catalogue_nothing_is_said(oracle: str) -> None:
    assert list_warnings(oracle=oracle) == []
    assert list_warnings(system="dgx-a100:precision=bf16", oracle=oracle) == []


@pytest.mark.parametrize(
    ("oracle", "key"), [("machine", "pe.efficiency"), ("paper", "pe.tensor_peaks")]
)
def test_keys_of_the_other_oracle_are_named(oracle: str, key: str) -> None:
    text = "\n".join(list_warnings(system=define("system", "dgx-a100"), oracle=oracle))
    assert key in text
    other = {"machine": "pe.tensor_peaks", "paper": "pe.efficiency"}[oracle]
    assert other not in text


@pytest.mark.parametrize(
    ("profile", "missing"),
    [
        ({}, "batch: 32, precision: fp32"),  # assumed
        ({"batch": 32}, "precision: fp32"),
        ({"batch": 32, "precision": "amp"}, "not used"),
    ],
)
def test_a_profile_is_not_used_or_completed_in_silence(
    profile: dict[str, object], missing: str
) -> None:
    measured = {"device": "v100", "shape": [3, 224, 224], "seconds": 1e-3} | profile
    model = define("model", "vgg16", profiles=[measured])
    (text,) = list_warnings(model, "abci")
    assert "mine" in text
    assert missing in text
    assert list_warnings(model, "abci", times="roofline") == []
    assert list_warnings(model, "abci", oracle="paper") == []
    assert list_warnings(model, "dgx-a100") == []  # another device


def test_a_profile_that_is_used_is_not() -> None:
    measured = {"device": "v100", "shape": [3, 224, 224], "seconds": 1e-3}
    model = define("model", "vgg16", profiles=[measured | {"batch": 32, "precision": "fp32"}])
    assert list_warnings(model, "abci") == []
