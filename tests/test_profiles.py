"""Measured times of whole models: which one an answer uses, and that it says so."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from paradl.grids.entries.names import list_names
from paradl.grids.grid import Grid
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.spec import validate_spec
from paradl.sweep.questions.predict import predict

MEASURED = {"device": "v100", "shape": [3, 224, 224], "seconds": 1e-2}


def list_profiles() -> list[tuple[Any, ...]]:
    models = [find("model", name, Path()) for name in list_names("model")]
    return [
        (model.name, profile.device, profile.shape, profile.precision)
        for model in models
        if isinstance(model, Architecture)
        for profile in model.profiles
    ]


def find_system_of(device: str) -> str:
    systems = [find("system", name, Path()) for name in list_names("system")]
    return next(system.name for system in systems if system.pe.device == device)


def ask(model: Any = "resnet50", system: str = "abci", **settings: Any) -> dict[str, Any]:
    settings = {"calibration": "none", **settings}
    return predict(model, "serial", 1, 32, system=system, dataset="imagenet", settings=settings)


@pytest.mark.parametrize(("model", "device", "shape", "precision"), list_profiles())
def test_every_profile_of_the_catalogue_is_used_on_its_own_device(
    model: str, device: str, shape: tuple[int, ...], precision: str
) -> None:
    dataset = {"name": "own", "samples": 1000, "shape": list(shape), "targets": 10}
    axes = {"model": [model], "dataset": [dataset], "strategy": ["serial"], "pe": 1, "batch": 1}
    axes |= {"system": [f"{find_system_of(device)}:precision={precision}"]}
    workload = Grid.from_spec(validate_spec({"axes": axes}, "")).workload(0, 0, 0)
    assert workload is not None
    assert workload.profile is not None
    assert workload.profile.shape == shape
    assert not workload.profile.missing


def test_a_profile_that_does_not_say_how_it_was_taken_is_less_sure() -> None:
    vgg = find("model", "vgg16", Path()).definition() | {"name": "mine"}
    stated = ask(vgg | {"profiles": [MEASURED | {"batch": 32, "precision": "fp32"}]})
    left_open = ask(vgg | {"profiles": [MEASURED]})
    assert left_open["iteration_time"] == stated["iteration_time"]
    widths = [
        value["intervals"]["iteration_time"]["p90"] / value["iteration_time"]
        for value in (stated, left_open)
    ]
    assert widths[0] < widths[1]
    assert "32 samples;" in f"{stated['profile'].replace(',', ';')};"
    assert "assumed" in left_open["profile"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"system": "abci:precision=amp"}, "in fp32"),
        ({"system": "dgx-a100"}, "not measured"),
        ({"times": "roofline"}, "roofline"),
    ],
)
def test_an_answer_says_why_it_rests_on_no_profile(changes: dict[str, Any], reason: str) -> None:
    answer = ask(**changes)
    assert answer["times"] == "roofline"
    assert answer["profile"].startswith("none")
    assert reason in answer["profile"]


def test_the_documented_profile_is_used() -> None:
    """The file in docs/your-machine.md, on a machine with its device."""
    text = (Path(__file__).parents[1] / "docs" / "your-machine.md").read_text()
    block = re.search(r"```yaml\n(name: my_resnet50\n.*?)```", text, re.DOTALL)
    assert block is not None
    model = yaml.safe_load(block[1])
    system: dict[str, Any] = find("system", "dgx-a100", Path()).definition()
    system |= {"name": "mine", "precision": "fp32", "pe": system["pe"] | {"device": "mygpu"}}
    answer = predict(model, "data", 64, 32, system=system, dataset="imagenet")
    assert answer["times"] == "measured"
    assert answer["profile"].startswith("mygpu")
