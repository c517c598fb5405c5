"""JSON of the commands on samples and surrogates follows its schemas."""

import json

import pytest
from jsonschema import Draft202012Validator

from paradl.sweep.answers.types.schemas import build_schemas

SCHEMAS = build_schemas()


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("surrogate check", ()),
        ("surrogate evaluate", ()),
        ("surrogate evaluate", ("--split", "scale")),  # it was trained on that: a note
        ("surrogate predict", ()),
    ],
)
def test_answers(verb, options, trained, drawn, cli):
    paths = (drawn.path,) if verb == "surrogate check" else (trained, drawn.path)
    code, out, err = cli(*verb.split(), *paths, *options, "--format", "json")
    assert code in (0, 3), err
    answer = json.loads(out)
    assert answer
    validator = Draft202012Validator(SCHEMAS[verb])
    assert not [f"{error.json_path}: {error.message}" for error in validator.iter_errors(answer)]
