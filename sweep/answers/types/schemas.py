"""JSON schemas of what each verb prints with `--format json`, for agents and scripts."""

from importlib import import_module
from pathlib import Path

from paradl.grids.entries.parameters import PARAMETERS
from paradl.sweep.answers.types.facts import (
    AnswerType,
    Field,
    Schema,
    describe_fields,
    list_fields,
    state_parameter,
)
from paradl.sweep.answers.types.words import Extras

DRAFT = "https://json-schema.org/draft/2020-12/schema"

# Users name the axes of parameters that change together, so the schema cannot list their keys.
ROWS: Schema = {
    "type": ["integer", "null"],
    "unit": "1",
    "description": "the number of a row of parameters that change together, by its axis",
}

# Answer types by verb, collected from all files of this folder.
ANSWERS: dict[str, AnswerType] = {
    verb: answer
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if path != Path(__file__)
    for verb, answer in vars(import_module(f"{__package__}.{path.stem}")).get("ANSWERS", {}).items()
}


def list_answer_fields(answer: AnswerType) -> dict[str, Field]:
    """All fields that a row of an answer may have, by name."""
    fields = list_fields(answer.row)
    if answer.axes == "none":
        return fields
    # Any parameter may be an axis of a cube.
    axes = {name: _make_axis(name, answer.axes == "sought") for name in PARAMETERS}
    # Last, since an answer's own fields replace the axes of the same name.
    return axes | list_fields(Extras) | fields


def _make_axis(name: str, nullable: bool) -> Field:
    """Field for a parameter's value in a row."""
    kind = int if PARAMETERS[name].whole else float
    return Field(kind, state_parameter(name), nullable, optional=True)


def build_schemas() -> dict[str, Schema]:
    """JSON schemas (draft 2020-12) of the answers, by verb.

    In addition to `type`, the annotation `unit` has the SI unit of the numbers.
    """
    return {verb: _build_schema(verb, answer) for verb, answer in ANSWERS.items()}


def _build_schema(verb: str, answer: AnswerType) -> Schema:
    head = {"$schema": DRAFT, "title": f"paradl {verb} --format json"}
    row = describe_fields(list_answer_fields(answer))
    if answer.axes != "none":
        row["additionalProperties"] = ROWS
    return head | (row if answer.record else {"type": "array", "items": row})
