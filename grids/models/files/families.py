"""Families: networks of one design in many sizes, `{name: resnet, stages: [3, 4, 6, 3]}`.

A family is a file of settings, words and layers (template.py), in the catalogue or of the user's
own: `{name: ./my_family.yaml, width: 32}`.
"""

import json
from functools import cache, lru_cache
from typing import Any, Self

from pydantic import ConfigDict, GetJsonSchemaHandler, TypeAdapter, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from paradl.grids.entries.entry import Record
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.models.files.template import Template, fill_settings, is_required
from paradl.grids.models.steps.step import Steps
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.yamlfile import KeyLocation, explain_error, join_keys, load

FAMILIES = CATALOGUE / "families"
_STEPS: TypeAdapter[Steps] = TypeAdapter(Steps)


@cache
def list_families() -> tuple[str, ...]:
    """Names of the families in the catalogue."""
    return tuple(sorted(path.stem for path in FAMILIES.glob("*.yaml")))


@cache
def load_family(name: str) -> Template:
    """Load a family of the catalogue."""
    return Template.model_validate(load(FAMILIES / f"{name}.yaml").data)


class Family(Record):
    """A family of the catalogue with its settings."""

    model_config = ConfigDict(extra="allow")

    name: str

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            return value
        name = value["name"]
        given = {key: setting for key, setting in value.items() if key != "name"}
        if name not in list_families():
            raise InputError.unknown("family", name, list_families())
        return {"name": name} | fill_settings(load_family(name).settings, given, {}, join_keys)

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        self.write_steps()
        return self

    def __hash__(self) -> int:
        # As text: settings may be lists, which have no hash.
        return hash(self.model_dump_json())

    def write_steps(self) -> Steps:
        """Return the network's steps; ValueError for a wrong setting."""
        # As JSON, since lists and mappings cannot be keys of a cache.
        return _write_once(self.name, json.dumps(self.__pydantic_extra__))

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema: catalogued families with their settings, files with any settings."""
        forms: list[JsonSchemaValue] = [
            {
                "properties": {"name": {"const": name}} | {key: {} for key in settings},
                "required": [key for key, form in settings.items() if is_required(form)],
                "additionalProperties": False,
            }
            for name in list_families()
            for settings in [load_family(name).settings]
        ]
        file = {"properties": {"name": {"type": "string", "pattern": r"/|\.ya?ml$"}}}
        return {"type": "object", "required": ["name"], "anyOf": [*forms, file]}


@lru_cache(maxsize=256)  # steps are read for every sample shape
def _write_once(name: str, settings: str) -> Steps:
    written = load_family(name).write(json.loads(settings), join_keys)
    try:
        return _STEPS.validate_python(written.layers)
    except ValidationError as error:
        origin = written.find_origin
        raise explain_error(
            error, lambda path: KeyLocation("", origin(("layers", *path)))
        ) from None
