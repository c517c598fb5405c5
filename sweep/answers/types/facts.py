"""Facts about the fields of answers, and the JSON schemas that follow from them.

An answer is a TypedDict: a field's type is its type in JSON, and `Annotated` adds a `Fact`. Schemas
(`paradl schema`), units in tables' heads and the tests of what is printed follow from both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from grids.entries.parameters import PARAMETERS
from sweep.cube.variables import DERIVED, VARIABLES

Schema = dict[str, Any]

PLAIN: dict[object, str] = {str: "string", float: "number", int: "integer", bool: "boolean"}
PERCENTILES = ("10", "50", "90")


@dataclass(frozen=True)
class Fact:
    """The meaning of a field, and the unit of its numbers.

    scaled: tables write it with an SI prefix. names: the texts, or the keys, that it may have.
    """

    meaning: str
    unit: str = "1"
    scaled: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Field:
    """A field of an answer. kind: its type; optional: whether some answers lack it."""

    kind: object
    fact: Fact
    nullable: bool = False
    optional: bool = False


@dataclass(frozen=True)
class AnswerType:
    """The answer of a verb: rows, or one record.

    axes: rows have values along a space's axes, too, of several machines their settings, and notes;
    `sought` where a row may be of no cell, and its values null.
    """

    row: type
    record: bool = False
    axes: Literal["none", "known", "sought"] = "none"


def state_parameter(name: str) -> Fact:
    """The fact about a parameter's values."""
    row = PARAMETERS[name]
    return Fact(row.meaning, row.unit, row.unit != "1")


def state_variable(name: str, unit: str = "1") -> Fact:
    """The fact about a variable of the cube, or what follows from some, in an answer's unit."""
    return Fact((DERIVED | VARIABLES)[name].long_name, unit)


def list_fields(answer: type) -> dict[str, Field]:
    """The fields of an answer, by name; the percentile of a field says that it is one."""
    hints = get_type_hints(answer, include_extras=True)
    return {name: _note_percentile(name, _read_field(hint)) for name, hint in hints.items()}


def _note_percentile(name: str, field: Field) -> Field:
    _, _, percent = name.rpartition("_p")
    if percent not in PERCENTILES:
        return field
    meaning = f"{percent}th percentile: {field.fact.meaning}"
    return replace(field, fact=replace(field.fact, meaning=meaning))


def _read_field(hint: Any) -> Field:
    """The field of an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return replace(_read_field(arguments[0]), optional=True)
    if origin in (Union, UnionType) and NoneType in arguments:
        (inner,) = (each for each in arguments if each is not NoneType)
        return replace(_read_field(inner), nullable=True)
    assert origin is Annotated, hint  # each field has a fact
    kind, fact = arguments
    return Field(kind, fact)


def describe_answer(answer: type) -> Schema:
    """The JSON schema of an answer, or of one of its rows; no other key than its own is allowed."""
    return describe_fields(list_fields(answer))


def describe_fields(fields: dict[str, Field]) -> Schema:
    """The JSON schema of a record of these fields."""
    return {
        "type": "object",
        "properties": {name: _describe_field(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if not field.optional],
        "additionalProperties": False,
    }


def _describe_field(field: Field) -> Schema:
    schema = _describe_kind(field.kind, field.fact.names)
    unit = {"unit": field.fact.unit} if holds_numbers(schema) else {}
    shown = _allow_null(schema) if field.nullable else schema
    return shown | unit | {"description": field.fact.meaning}


def _describe_kind(kind: Any, names: tuple[str, ...] = ()) -> Schema:
    """The schema of a type, without units and meanings but those of an answer inside it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return describe_answer(kind)
    if origin is list:
        return {"type": "array", "items": _describe_kind(arguments[0], names)}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is dict:
        return _describe_mapping(arguments[1], names)
    if origin in (Union, UnionType):
        return _join_kinds(arguments)
    return {"enum": list(names)} if names else {"type": PLAIN[kind]}


def _describe_mapping(value: Any, names: tuple[str, ...]) -> Schema:
    if value is Any:
        return {"type": "object"}
    schema = _describe_kind(value)
    if not names:
        return {"type": "object", "additionalProperties": schema}
    properties = dict.fromkeys(names, schema)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _join_kinds(kinds: tuple[Any, ...]) -> Schema:
    """The schema of a value of one of several types."""
    schemas = [{"type": "null"} if kind is NoneType else _describe_kind(kind) for kind in kinds]
    joined = {key: value for schema in schemas for key, value in schema.items()}
    return joined | {"type": [schema["type"] for schema in schemas]}


def _allow_null(schema: Schema) -> Schema:
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    kinds = schema["type"]
    return schema | {"type": [*(kinds if isinstance(kinds, list) else [kinds]), "null"]}


def holds_numbers(schema: Schema) -> bool:
    """True if a value, an item of a list or a named part may be a number.

    Fields of an answer inside it have units of their own.
    """
    return bool({"number", "integer"}.intersection(_list_types(schema)))


def _list_types(schema: Schema) -> Iterator[str]:
    """The types of a value, of its items and of its named parts."""
    parts = (
        schema,
        schema.get("items", {}),
        schema.get("additionalProperties") or {},
        *(part for part in schema.get("properties", {}).values() if "description" not in part),
    )
    for part in parts:
        kinds = part.get("type", ())
        yield from [kinds] if isinstance(kinds, str) else kinds
