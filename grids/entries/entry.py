"""Entries of the catalogue: named, sourced, frozen records.

`definition()` is the whole entry as plain data. Stores keep it, so that a sweep can be resumed
without the user's files.
"""

import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import Annotated, Any, Self

import pydantic
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_quantity

MOST_NAME = 200  # characters; names are labels of the cube and part of messages


# Keys of several files, which mean the same in each.
KEYS = {
    "model": "a network: a name of the catalogue, or a file",
    "dataset": "a data set: a name of the catalogue, or a file",
    "system": "a machine: a name of the catalogue, or a file",
    "strategy": "a form of parallelism, such as data+pipeline",
    "precision": "precision of training",
    "target": "what training reaches, such as top1>=0.759",
    "note": "a remark",
    "source": "where its values are from",
}


class Record(pydantic.BaseModel):
    """A frozen part of an entry; unknown keys are refused.

    Sentences of docstrings such as `batch, precision: of the measurement.` are descriptions in JSON
    schemas; keys of no class's own mean what KEYS says.
    """

    # A misspelt key would silently leave a default. Frozen, since networks are keys of caches.
    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core_schema)
        texts = dict(KEYS)
        for base in reversed(cls.__mro__):
            for sentence in re.split(r"(?<=\.) ", " ".join((base.__doc__ or "").split())):
                if match := re.match(r"((?:\w+, )*\w+): (.+?)\.?$", sentence):
                    texts |= dict.fromkeys(match[1].split(", "), match[2])
        for name, key in handler.resolve_ref_schema(schema).get("properties", {}).items():
            if name in texts:
                key.setdefault("description", texts[name])
        return schema


def refuse_bool(value: object) -> object:
    """Return the value; ValueError for a bool, which Python would take for 0 or 1."""
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {shorten(value)}")
    return value


def take_quantity(unit: str, example: str = "") -> BeforeValidator:
    """Return a validator for a number, or a text with its unit."""
    read = partial(parse_quantity, unit=unit, where="", example=example)
    return BeforeValidator(read, json_schema_input_type=float | str)


def expect_one_of(kind: str, names: Collection[str]) -> BeforeValidator:
    """Return a validator for a word out of `names`; `kind` names it in messages."""

    def check(name: object) -> object:
        if name not in names:
            raise InputError.unknown(kind, name, names)
        return name

    return BeforeValidator(check)


def list_one(value: object) -> object:
    """Return a single value as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


def _expect_one_line(name: str) -> str:
    if not name.isprintable():
        raise ValueError(f"expected a name on one line, got {shorten(name)}")
    return name


# float64 is exact up to 2**53. Bounds come first: behind our own validators, pydantic leaves them
# out of JSON schemas.
Count = Annotated[int, Field(gt=0, le=2**53), BeforeValidator(refuse_bool)]
Name = Annotated[str, Field(min_length=1, max_length=MOST_NAME), AfterValidator(_expect_one_line)]
Texts = Annotated[
    tuple[str, ...], BeforeValidator(list_one, json_schema_input_type=str | tuple[str, ...])
]
Sources = Texts


class Entry(Record):
    """A named entry of the catalogue, or a user's file of the same form.

    name: by which answers call it. title: one line about it.
    """

    name: Name
    title: str = ""
    source: Sources = ()

    def definition(self) -> dict[str, object]:
        """Return the entry as plain data, from which `from_definition` makes the same entry."""
        # In JSON mode, quantities of unusual size get the unit without which they are refused.
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def from_definition(cls, definition: dict[str, object]) -> Self:
        return cls.model_validate(definition)


def define_once(entries: Mapping[Any, Entry]) -> list[dict[str, object]]:
    """Return the entries as plain data without repetition."""
    once = {id(entry): entry for entry in entries.values()}
    return [entry.definition() for entry in once.values()]


def split_settings(text: str, where: str, example: str) -> dict[str, str]:
    """Split `key=value,...` behind a name into values by key, as written.

    example: for InputError, such as `dgx-h100:precision=tf32`.
    """
    settings: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key in settings:
            what = f"expected key=value once each, got {shorten(item)}"
            raise InputError(what, where=where, advice=f"write it like {example!r}")
        settings[key] = value
    return settings
