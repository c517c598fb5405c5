"""Schemas of files that users write take what is read, and refuse what is refused."""

import csv
import json
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from paradl.grids.convergence.points import read_points
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.yamlfile import load
from paradl.sweep.answers.types.schemas import build_schemas
from paradl.sweep.cli.catalogue import FORMS
from paradl.sweep.measured.runs import REQUIRED, read_runs

ROOT = Path(__file__).parents[3]
SCHEMAS = {
    form: TypeAdapter(resolve_name(f"paradl.{place}")).json_schema()
    for form, place in FORMS.items()
}
PLACES = {
    "spec": "examples/*.yaml",
    "mapping": "docs/files/your-runs/runs/mapping.yaml",
    **{form: f"grids/catalogue/{form}s/*.yaml" for form in ("dataset", "system", "calibration")},
    "graph": "grids/catalogue/graphs/*.yaml",
}
FILES = [(form, path) for form, place in PLACES.items() for path in sorted(ROOT.glob(place))]
LAW = {"name": "mine", "model": "m", "dataset": "d", "target": "t", "epochs_min": 35}
NUMBERS = {"p", "samples_per_replica", "global_batch", "epochs", "steps"}


def is_valid(form: str, value: object) -> bool:
    return Draft202012Validator(SCHEMAS[form]).is_valid(value)


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Rows of a table, its numbers as such, without empty fields."""
    with path.open() as file:
        return [
            {key: read_number(key, text) for key, text in row.items() if text}
            for row in csv.DictReader(file)
        ]


def read_number(column: str, text: str) -> str | float:
    is_number = column in NUMBERS or column.endswith("_s")
    return float(text) if is_number and text != "never" else text


@pytest.mark.parametrize("form", FORMS)
def test_it_is_a_schema(form):
    Draft202012Validator.check_schema(SCHEMAS[form])


@pytest.mark.parametrize("form", FORMS)
def test_each_key_is_described(form):
    parts = {form: SCHEMAS[form], **SCHEMAS[form].get("$defs", {})}
    bare = [
        f"{name}.{key}"
        for name, part in parts.items()
        for key, value in part.get("properties", {}).items()
        if not value.get("description")
    ]
    assert not bare


@pytest.mark.parametrize(("form", "path"), FILES, ids=lambda value: getattr(value, "stem", value))
def test_it_takes_the_files_of_the_catalogue_and_of_the_documentation(form, path):
    data = load(path).data
    assert is_valid(form, data)
    assert not is_valid(form, data | {"nmae": "misspelt"})


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("runs", CATALOGUE / "measured" / "abci.csv"),
        ("runs", ROOT / "docs" / "files" / "your-runs" / "runs.csv"),
        ("epochs", CATALOGUE / "measured" / "epochs.csv"),
    ],
)
def test_rows_of_tables(form, path):
    for row in read_csv(path):
        assert is_valid(form, row), row
        assert not is_valid(form, {key: row[key] for key in row if key != "model"})


def write_csv(path: Path, row: dict[str, str]) -> Path:
    path.write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    return path


def test_columns_of_runs_are_those_that_are_read(tmp_path):
    assert tuple(SCHEMAS["runs"]["required"]) == REQUIRED
    columns = SCHEMAS["runs"]["properties"]
    row = {key: "abci" if columns[key].get("type") == "string" else "2" for key in columns}
    (run,) = read_runs(write_csv(tmp_path / "runs.csv", row | {"memory": "2 GB"}))
    assert (run.measured.comp, run.measured.comm, run.memory) == (2, 2, 2e9)
    assert run.system == run.source == run.note == "abci"


def test_columns_of_epochs_are_those_that_are_read(tmp_path):
    row = dict.fromkeys(SCHEMAS["epochs"]["properties"], "1")
    (series,) = read_points(write_csv(tmp_path / "epochs.csv", row))
    assert series.points[0].note == "1"


@pytest.mark.parametrize(
    ("form", "changes", "fits"),
    [
        ("dataset", {"samples": 10, "shape": [3, 8, 8], "targets": 2}, True),
        ("dataset", {"tokens": 1000, "length": 10}, True),
        ("dataset", {"samples": 10, "targets": 2}, False),
        ("convergence", {**LAW, "critical_batch": 47_000}, True),
        ("convergence", {**LAW, "epochs_min": "many"}, False),
        ("system", {"pes_per_node": 0}, False),
    ],
)
def test_it_agrees_with_the_reader(form, changes, fits):
    entry = {"name": "mine", **changes}
    assert is_valid(form, entry) is fits
    if fits:
        find(form, entry, Path())
    else:
        with pytest.raises(InputError):
            find(form, entry, Path())


def test_the_command_prints_each(cli):
    for form in FORMS:
        assert json.loads(cli("schema", form)[1]) == json.loads(json.dumps(SCHEMAS[form]))
    assert cli("schema")[1] == cli("schema", "spec")[1]


def test_words_of_a_command_and_groups(cli):
    every = build_schemas()
    assert json.loads(cli("schema", "list", "models")[1]) == every["list models"]
    for group in ("provision", "list", "import"):
        printed = json.loads(cli("schema", group)[1])
        assert len(printed) > 1
        assert printed == {verb: every[verb] for verb in every if verb.startswith(f"{group} ")}


def test_help_and_messages_name_all(cli):
    assert {*FORMS} <= {*re.findall(r"\w+", cli("schema", "--help")[1])}
    code, out, err = cli("schema", "none-of-them")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert {*FORMS, "import model", "provision"} <= {*re.split("[:,] ", err.strip())}
