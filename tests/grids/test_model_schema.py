"""The JSON schema of model files accepts what we accept, and refuses what we refuse."""

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from paradl.grids.entries.names import CATALOGUE
from paradl.grids.models.architecture import Architecture, ModelFile
from paradl.grids.models.kinds import KIND_OF_STEP
from paradl.grids.reading.yamlfile import read_nodes

SCHEMA: dict[str, Any] = TypeAdapter(ModelFile).json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
FILES = sorted((CATALOGUE / "models").glob("*.yaml"))
PAGE = (Path(__file__).parents[2] / "docs" / "your-model.md").read_text()
EXAMPLES = [read_nodes(block)[1] for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def make_model(example: Any) -> Any:
    """Return a fragment of the page as a file."""
    whole = {"name": "net", "rank": 2, "layers": example}
    return whole if isinstance(example, list) else example


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_takes_the_catalogue(file: Path) -> None:
    VALIDATOR.validate(read_nodes(file.read_text())[1])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda value: str(value)[:30])
def test_it_takes_the_examples_of_the_page(example: Any) -> None:
    VALIDATOR.validate(make_model(example))


@pytest.mark.parametrize(
    ("family", "fits"),
    [
        ({"name": "resnet", "stages": [1]}, True),
        ({"name": "./mine.yaml", "stages": [1]}, True),
        ({"name": "resnet", "stages": [1], "widht": 3}, False),
        ({"name": "resnet"}, False),
        ({"name": "resnett", "stages": [1]}, False),
    ],
)
def test_it_knows_the_settings_of_families(family: Any, fits: bool) -> None:
    assert VALIDATOR.is_valid({"name": "net", "rank": 2, "family": family}) is fits


def test_it_knows_every_word() -> None:
    _, mapping = SCHEMA["$defs"]["Step"]["anyOf"]
    assert set(KIND_OF_STEP) < set(mapping["properties"])


@pytest.mark.parametrize(
    "step",
    [
        "swish",
        "conv",
        {"conv": 0},
        {"conv": 8},
        {"conv": {"filters": 8}},
        {"conv": {"filters": 8, "kernel": 3, "dilation": 0}},
        {"conv": {"filters": 8, "kernel": 3, "groups": "chanels"}},
        {"conv": {"filters": 8, "kernel": [1, 1, 1, 1]}},
        {"free": {"flops": -1}},
        {"relu": None, "dropout": None},
        {"residual": [{"convolution": 3}]},
        {},
    ],
)
def test_it_refuses_what_is_refused(step: Any) -> None:
    model = make_model([step])
    assert not VALIDATOR.is_valid(model)
    with pytest.raises(ValueError, match="layers"):
        Architecture.from_definition(model)
