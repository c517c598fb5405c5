"""Model files: plain architectures, or templates with settings and words.

A file with `settings` or `words` is a template (template.py). So is a user's family,
`family: {name: ./my_family.yaml, ...}`, whose layers a model takes with its own settings.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue

from grids.entries.names import is_path
from grids.models.architecture import Architecture
from grids.models.files.forms import Form
from grids.models.files.template import Template, Word
from grids.reading.errors import InputError
from grids.reading.yamlfile import (
    KeyLocation,
    KeyPath,
    Source,
    explain_error,
    load,
    validate,
)

TEMPLATE_KEYS = ("settings", "words")
# Signs of a template in a message about a plain file.
TEMPLATE_WORDS = re.compile(r"\$|'(?:if|set)'|\.(?:if|set|index):")
TEMPLATE_ADVICE = (
    "expressions, 'if', 'set' and 'index' need 'settings' at the top of the file, even if only "
    "'settings: {}'"
)


class TemplateFile(Architecture):
    """A template's keys, for schemas and messages."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in TEMPLATE_KEYS]}
    )

    settings: Form = Field(default_factory=dict)
    words: dict[str, Word] = Field(default_factory=dict)
    layers: list[Any]  # type: ignore[assignment]  # not yet plain steps


def describe_model_file() -> JsonSchemaValue:
    """Return the JSON schema of a model file."""
    return TypeAdapter(Architecture | TemplateFile).json_schema()


def read_architecture(data: Mapping[str, object], source: Source, base: Path) -> Architecture:
    """Return the architecture in a file's data; InputError begins with the place in `source`.

    base: folder for relative paths of families.
    """
    family = data.get("family")
    if isinstance(family, Mapping) and is_path(str(family.get("name"))):
        given = {key: value for key, value in family.items() if key != "name"}
        document = load(base / os.path.expanduser(str(family["name"])))
        rest = {key: value for key, value in data.items() if key != "family"}
        if "layers" in data:
            raise InputError(
                "expected either 'layers' or 'family', got both", where=KeyLocation(source, ()).text
            )
        return _write_out(document.data, document, given, rest, source)
    if any(key in data for key in TEMPLATE_KEYS):
        rest = {key: value for key, value in data.items() if key not in TEMPLATE_KEYS}
        return _write_out(data, source, {}, rest, source)
    try:
        return validate(Architecture, data, source)
    except InputError as error:
        if TEMPLATE_WORDS.search(str(error)):
            raise InputError(f"{error}\n{TEMPLATE_ADVICE}") from None
        raise


def _write_out(
    template: Mapping[str, object],
    origin: Source,
    given: Mapping[str, object],
    rest: Mapping[str, object],
    source: Source,
) -> Architecture:
    """Expand the layers of a template from `origin`, with other keys from `source`."""
    keys = {key: template[key] for key in (*TEMPLATE_KEYS, "layers") if key in template}
    try:
        form = Template.model_validate(keys)
    except ValidationError as error:
        raise explain_error(error, origin, TemplateFile) from None

    def locate_key(keypath: KeyPath) -> str:
        # A family's settings stand in the file that names the family.
        if origin is not source and keypath[:1] == ("settings",):
            return KeyLocation(source, ("family", *keypath[1:])).text
        return KeyLocation(origin, keypath).text

    written = form.write(given, locate_key)

    def locate(keypath: KeyPath) -> KeyLocation:
        if keypath[:1] == ("layers",):
            return KeyLocation(origin, written.find_origin(keypath))
        return KeyLocation(source, keypath)

    return validate(Architecture, {**rest, "layers": written.layers}, locate)
