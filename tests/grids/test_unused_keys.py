"""Keys of files that the oracle ignores are always reported."""

import json
from typing import Any

import pytest

from paradl.grids.grid import Grid
from paradl.grids.library import find_catalogued
from paradl.grids.notes import list_warnings
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import validate_spec


def define(kind: Any, name: str, **changes: object) -> dict[str, Any]:
    entry = find_catalogued(kind, name)
    assert entry is not None
    return entry.definition() | {"name": "mine"} | changes


def read_warnings(
    model: object = "vgg16", system: object = "dgx-a100", **keys: object
) -> list[str]:
    dataset = keys.pop("dataset", "imagenet")
    axes: dict[str, object] = {"model": [model], "system": [system]}
    axes["strategy"] = keys.pop("strategy", "data")
    axes |= {} if dataset is None else {"dataset": [dataset]}
    spec = {"axes": {**axes, "pe": 4, "batch": 32}, **keys}
    return list_warnings(Grid.from_spec(validate_spec(spec, "spec")))


@pytest.mark.parametrize("oracle", ["machine", "paper"])
def test_of_the_catalogue_nothing_is_said(oracle: str) -> None:
    assert read_warnings(oracle=oracle) == []
    assert read_warnings(system="dgx-a100:precision=bf16", oracle=oracle) == []


@pytest.mark.parametrize(
    ("oracle", "key"), [("machine", "pe.efficiency"), ("paper", "pe.tensor_peaks")]
)
def test_keys_of_the_other_oracle_are_named(oracle: str, key: str) -> None:
    text = "\n".join(read_warnings(system=define("system", "dgx-a100"), oracle=oracle))
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
    (text,) = read_warnings(model, "abci")
    assert "mine" in text
    assert missing in text
    assert read_warnings(model, "abci", times="roofline") == []
    assert read_warnings(model, "abci", oracle="paper") == []
    assert read_warnings(model, "dgx-a100") == []  # another device


@pytest.mark.parametrize(
    ("oracle", "change", "said"),
    [
        ("paper", {"input_rate": 1000}, "input_rate"),
        ("machine", {"input_rate": 1000}, ""),
        ("paper", {"levels": "oversubscribed"}, "oversubscription"),
        ("machine", {"levels": "oversubscribed"}, ""),
        ("paper", {"mesh": "all alike"}, "mesh"),
        ("machine", {"mesh": "all alike"}, "mesh"),
    ],
)
def test_keys_of_the_network(oracle: str, change: dict[str, object], said: str) -> None:
    system = define("system", "abci") | {"contention": {}, "software": "ddp"}
    del system["size"]
    system["levels"][2]["oversubscription"] = 1.0
    if "levels" in change:
        system["levels"][1]["oversubscription"] = 2.0
    elif "mesh" in change:
        links = [[int(row != column) for column in range(4)] for row in range(4)]
        system["mesh"] = {"bandwidth": "25 GB/s", "links": links}
    else:
        system |= change
    del system["pe"]["tensor_peaks"], system["software"]
    own = [
        text
        for text in read_warnings(system=system, oracle=oracle, times="roofline")
        if "pe.efficiency" not in text
    ]
    assert len(own) == bool(said)
    assert said in "".join(own)


def test_targets_that_no_model_reads() -> None:
    data = define("dataset", "imagenet", targets=10)
    assert read_warnings("resnet50", dataset=data) == []  # its family's file does
    assert read_warnings(dataset=data) == []
    model = define("model", "vgg16")
    model = json.loads(json.dumps(model).replace('"targets"', "1000"))
    (text,) = read_warnings(model, dataset=data)
    assert "targets" in text


def test_epochs_of_another_optimizer() -> None:
    law: dict[str, object] = {
        "name": "mine",
        "model": "vgg16",
        "dataset": "imagenet",
        "target": "top1>=0.7",
    }
    law |= {"epochs_min": 50, "critical_batch": 1000, "optimizer": "Adam"}
    (text,) = read_warnings(convergence=law)
    assert "Adam" in text
    assert read_warnings(convergence=law, optimizer="adam") == []
    with pytest.raises(InputError, match="target"):
        read_warnings(convergence=law, target="top1>=0.8")


@pytest.mark.parametrize(
    ("strategy", "parameters", "said"),
    [
        ("data", {"group": 4}, "group"),
        ("data+filter:group=4", {"group": 4}, "group"),
        ("data+filter", {"group": 4}, ""),
        ("filter", {"segments": 8}, "segments"),
        ("data+pipeline:group=4", {"segments": 8}, ""),
        ("data", {"zero": 1}, ""),
        ("data:zero=2", {"zero": 1}, "zero"),
        ("filter", {"zero": 1}, "zero"),
    ],
)
def test_choices_that_no_strategy_takes(
    strategy: str, parameters: dict[str, object], said: str
) -> None:
    own = read_warnings(strategy=strategy, parameters=parameters)
    assert len(own) == bool(said)
    assert said in "".join(own)


def test_a_calibration_without_layouts_is_named_only_if_it_was_asked_for() -> None:
    layout: dict[str, Any] = {"model": "llama2_7b", "dataset": "pile", "system": "abci"}
    assert read_warnings(**layout) == []
    (text,) = read_warnings(**layout, calibration="abci")
    assert "'abci'" in text
    assert read_warnings(system="abci", calibration="abci") == []


def test_a_model_that_no_data_set_fits() -> None:
    (text,) = read_warnings("inception_v3", dataset="imagenet")
    assert "inception_v3 does not take the samples of imagenet" in text
    assert "window" in text
    assert read_warnings("inception_v3", dataset="imagenet-299") == []


def test_a_profile_that_is_used_is_not() -> None:
    measured = {"device": "v100", "shape": [3, 224, 224], "seconds": 1e-3}
    model = define("model", "vgg16", profiles=[measured | {"batch": 32, "precision": "fp32"}])
    assert read_warnings(model, "abci") == []
