"""Facts about the fields of answers, and the JSON schemas derived from them.

An answer is a TypedDict: a field's type is its type in JSON, and `Annotated` adds its meaning, or a
`Fact` with its unit. Schemas (`paradl schema`), the units in table heads and the tests of printed
answers are derived from both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
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

from paradl.grids.entries.entry import Record
from paradl.grids.entries.parameters import PARAMETERS
from paradl.sweep.cube.variables import DERIVED, VARIABLES

Schema = dict[str, Any]

PLAIN: dict[object, str] = {str: "string", float: "number", int: "integer", bool: "boolean"}


@dataclass(frozen=True)
class Fact:
    """Meaning of a field, and the unit of its numbers.

    scaled: tables write the number with an SI prefix. names: allowed texts, or keys of a mapping.
    open: nested rows may have further keys, the axes of their cube.
    """

    meaning: str = ""
    unit: str = "1"
    scaled: bool = False
    names: tuple[str, ...] = ()
    open: bool = False


Seconds = Annotated[float, Fact(unit="s", scaled=True)]
Bytes = Annotated[float, Fact(unit="B", scaled=True)]


@dataclass(frozen=True)
class Field:
    """Type and fact of an answer's field. optional: some answers lack the field."""

    kind: object
    fact: Fact
    nullable: bool = False
    optional: bool = False


@dataclass(frozen=True)
class AnswerType:
    """Type of a verb's answer: rows, or one record.

    axes: "known": rows also have the values along a space's axes, settings of systems and notes;
    "sought": the same, but these values are null in a row without a cell.
    """

    row: type
    record: bool = False
    axes: Literal["none", "known", "sought"] = "none"


def state_parameter(name: str) -> Fact:
    """Fact about a parameter's values."""
    row = PARAMETERS[name]
    return Fact(row.meaning, row.unit, scaled=row.unit != "1")


def state_variable(name: str, unit: str = "1") -> Fact:
    """Fact about a stored or derived variable of the cube, in the unit of the answer."""
    return Fact((DERIVED | VARIABLES)[name].long_name, unit)


@cache  # both sets of units of tables ask for all answers
def list_fields(answer: type) -> dict[str, Field]:
    """Fields of an answer by name; of a record, those of its `definition`, without nulls."""
    if issubclass(answer, Record):
        keys = answer.model_json_schema()["properties"]
        texts = {name: key["description"].rstrip(".") for name, key in keys.items()}
        facts = {name: Fact(text[0].lower() + text[1:]) for name, text in texts.items()}
        hints = get_type_hints(answer)
        return {name: _read_record(hints[name], fact) for name, fact in facts.items()}
    hints = get_type_hints(answer, include_extras=True)
    return {name: _read_field(hint) for name, hint in hints.items()}


def _read_record(kind: Any, fact: Fact) -> Field:
    """Make the field of a record's key."""
    kinds = [part for part in get_args(kind) if part is not NoneType]
    is_optional = get_origin(kind) in (Union, UnionType)
    return Field(kinds[0] if is_optional else kind, fact, optional=is_optional)


def _read_field(hint: Any) -> Field:
    """Read an annotation into a field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return replace(_read_field(arguments[0]), optional=True)
    if origin in (Union, UnionType) and NoneType in arguments:
        (inner,) = (kind for kind in arguments if kind is not NoneType)
        return replace(_read_field(inner), nullable=True)
    assert origin is Annotated, hint  # each field has a meaning
    kind, *notes = arguments
    fact = next((note for note in notes if isinstance(note, Fact)), Fact())
    # The field's meaning follows that of its shared type, and replaces it.
    for text in (note for note in notes if isinstance(note, str)):
        fact = replace(fact, meaning=text)
    return Field(kind, fact)


def describe_fields(fields: dict[str, Field]) -> Schema:
    """JSON schema of a record with these fields; other keys are not allowed."""
    return {
        "type": "object",
        "properties": {name: _describe_field(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if not field.optional],
        "additionalProperties": False,
    }


def _describe_field(field: Field) -> Schema:
    schema = _describe_kind(field.kind, field.fact.names)
    if field.fact.open:
        del schema.get("items", schema)["additionalProperties"]
    unit = {"unit": field.fact.unit} if holds_numbers(schema) else {}
    shown = _allow_null(schema) if field.nullable else schema
    return shown | unit | {"description": field.fact.meaning}


def _describe_kind(kind: Any, names: tuple[str, ...] = ()) -> Schema:
    """Schema of a type; a nested answer keeps the units and meanings of its fields."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, Record)):
        return describe_fields(list_fields(kind))
    if origin in (list, tuple):
        return {"type": "array", "items": _describe_kind(arguments[0], names)}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (dict, Mapping):
        return _describe_mapping(arguments[1], names)
    if origin in (Union, UnionType):
        return _join_kinds(arguments)
    return {"enum": list(names)} if names else {"type": PLAIN[kind]}


def _describe_mapping(value: Any, names: tuple[str, ...]) -> Schema:
    schema = _describe_kind(value)
    if not names:
        return {"type": "object", "additionalProperties": schema}
    properties = dict.fromkeys(names, schema)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _join_kinds(kinds: tuple[Any, ...]) -> Schema:
    """Schema of a value that has one of several types."""
    schemas = [{"type": "null"} if kind is NoneType else _describe_kind(kind) for kind in kinds]
    joined = {key: value for schema in schemas for key, value in schema.items()}
    return joined | {"type": [schema["type"] for schema in schemas]}


def _allow_null(schema: Schema) -> Schema:
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    kinds = schema["type"]
    return schema | {"type": [*(kinds if isinstance(kinds, list) else [kinds]), "null"]}


def holds_numbers(schema: Schema) -> bool:
    """True if the value, a list's item or a mapping's value may be a number.

    Fields of a nested answer do not count: they state their own units.
    """
    return bool({"number", "integer"}.intersection(_list_types(schema)))


def _list_types(schema: Schema) -> Iterator[str]:
    """Yield the JSON types of a value, its items and its named parts."""
    parts = (
        schema,
        schema.get("items", {}),
        schema.get("additionalProperties") or {},  # False: no other keys
        # A description marks a field of a nested answer.
        *(part for part in schema.get("properties", {}).values() if "description" not in part),
    )
    for part in parts:
        kinds = part.get("type", ())
        yield from [kinds] if isinstance(kinds, str) else kinds
