"""What is printed as JSON of samples and surrogates is what its schemas say."""

import json

import pytest
from jsonschema import Draft202012Validator

from sweep.answers.types.schemas import build_schemas

SCHEMAS = build_schemas()


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("leakage", ()),
        ("surrogate evaluate", ()),
        ("surrogate evaluate", ("--split", "scale")),  # it was trained on that: a note
        ("surrogate predict", ()),
    ],
)
def test_answers(verb, options, trained, drawn, paradl):
    asked = (drawn.path,) if verb == "leakage" else (trained, drawn.path)
    code, out, err = paradl(*verb.split(), *asked, *options, "--format", "json")
    assert code in (0, 3), err
    answer = json.loads(out)
    assert answer
    validator = Draft202012Validator(SCHEMAS[verb])
    assert not [f"{each.json_path}: {each.message}" for each in validator.iter_errors(answer)]
