"""Rows of answers: the schema of a row, made of the names of its keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from grids.entries.parameters import PARAMETERS
from sweep.show.answer_keys import Key, Schema, allow_null, describe_key

PLACE = "model dataset system strategy"


@dataclass(frozen=True)
class Answer:
    """The keys of a verb's rows, or of its one record; `?` behind those that may be null.

    sometimes: keys that only some answers have. axes: `known` or, where they may be null, `sought`
    values along axes, any of PARAMETERS. own: keys that are something else here, or only here.
    record: one, and no rows. several_systems: rows may show precision and software.
    """

    always: str
    sometimes: str = ""
    axes: Literal["none", "known", "sought"] = "none"
    own: Mapping[str, Key] = field(default_factory=dict)
    record: bool = False
    several_systems: bool = False


def describe_row(answer: Answer) -> Schema:
    """The schema of one row; no key is allowed that it does not name."""
    named = [*answer.always.split(), *answer.sometimes.split()]
    if answer.several_systems:
        named += ["precision", "software"]
    told = {each.strip("?") for each in named}
    if answer.axes != "none":
        mark = "?" if answer.axes == "sought" else ""
        named += [f"{name}{mark}" for name in PARAMETERS if name not in told]
    return {
        "type": "object",
        "properties": dict(_describe(each, answer.own) for each in named),
        "required": [each.strip("?") for each in answer.always.split()],
        "additionalProperties": False,
    }


def describe_rows(answer: Answer) -> Schema:
    """The schema of rows, as a part of another answer."""
    return {"type": "array", "items": describe_row(answer)}


def _describe(named: str, own: Mapping[str, Key]) -> tuple[str, Schema]:
    """A key, and the schema of its values."""
    key = named.strip("?")
    schema = describe_key(key, own.get(key))
    return key, allow_null(schema) if named.endswith("?") else schema
