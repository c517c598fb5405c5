"""YAML files with line numbers, and messages about mistakes in them.

`plainyaml.py` decides what is read and what is refused; here are documents, and the mistakes that
pydantic finds in them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pydantic
import yaml

from grids.reading.errors import (
    MOST_TEXT,
    InputError,
    find_meant,
    format_text,
    shorten,
    suggest_name,
)
from grids.reading.plainyaml import MOST_BYTES, read_nodes
from grids.reading.textfile import read_text

ERRORS_SHOWN = 5  # one mistake often causes others; fewer where a message would be too long
MOST_CAUSE = 160  # characters of pydantic's own words, which may quote a value of the user's
# pydantic's phrases, and what a user would say.
PLAIN_WORDS = (
    (r"^Input should be a valid integer\b.*", "expected a whole number"),
    (r"^Input should be a valid number\b.*", "expected a number"),
    (r"^Input should be a valid string$", "expected a text"),
    (r"^Input should be ", "expected "),
)

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """The mapping that a YAML file holds, and the lines of its parts."""

    path: Path
    data: dict[str, object]
    root: yaml.Node = field(repr=False)

    def line(self, keypath: KeyPath) -> int | None:
        """The line of the key, or of the nearest part above it that is in the file."""
        node, line = self.root, None
        for part in keypath:
            mark, node = _find_child(node, part)
            line = line if mark is None else mark.line + 1
        return line

    def where(self, keypath: KeyPath = ()) -> str:
        """The file and the line of a key, as messages begin with them."""
        line = self.line(keypath)
        return str(self.path) if line is None else f"{self.path}:{line}"


Source = Document | str  # a file, or what messages call the data that are in none


class KeyLocation(NamedTuple):
    """A key of a file, or of data that are in none."""

    source: Source
    keypath: KeyPath

    @property
    def text(self) -> str:
        """The place as messages begin with it, file:line: key."""
        source, keypath = self
        where = source if isinstance(source, str) else source.where(keypath)
        # Where a value may be of several types, pydantic adds the type it tried: "literal['same']".
        key = ".".join(format_text(str(part)) for part in keypath if "[" not in str(part))
        return ": ".join(filter(None, (where, key)))


Locate = Callable[[KeyPath], KeyLocation]


def _find_child(node: yaml.Node, part: str | int) -> tuple[yaml.Mark | None, yaml.Node]:
    """The mark at which `part` of a node begins, and its node; (None, node) where there is none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        child = node.value[part]
        return child.start_mark, child
    return None, node


def load(path: Path) -> Document:
    """The document of a YAML file that holds one mapping; InputError where it does not."""
    text = read_text(path, MOST_BYTES)
    try:
        root, data = read_nodes(text)
    except yaml.YAMLError as error:
        raise _explain_syntax(path, error) from None
    # What PyYAML's constructors raise: of 2020-13-45, say, which it takes for a date.
    except (ValueError, ArithmeticError) as error:
        raise InputError(f"cannot be read as YAML: {error}", where=str(path)) from None
    if root is None or not isinstance(data, dict):
        kind = "nothing" if data is None else f"a {type(data).__name__}"
        raise InputError(
            f"expected a mapping, got {kind}", where=str(path), advice="write 'key: value' lines"
        )
    return Document(path, data, root)


def _explain_syntax(path: Path, error: yaml.YAMLError) -> InputError:
    """The error of a text that is no YAML, with its line."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    problem = (
        error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error).splitlines()[0]
    )
    where = str(path) if mark is None else f"{path}:{mark.line + 1}"
    return InputError(f"YAML syntax: {problem}", where=where)


def explain_error(
    error: pydantic.ValidationError,
    source: Source | Locate,
    model: type[pydantic.BaseModel] | None = None,
) -> InputError:
    """The error that lists mistakes of the user's input, "file:line: key: message" a line.

    `model` is what was validated; with it, a misspelt key gets the nearest one that exists. Data
    that were written out of a file have a `source` that locates their keys in it.
    """
    locate = source if callable(source) else lambda keypath: KeyLocation(source, keypath)
    errors = _drop_echoes(error.errors(include_url=False, include_context=False))
    # A block that is repeated is wrong in one place.
    by_place = {locate(mistake["loc"]).text: mistake for mistake in reversed(errors)}
    lines = [
        ": ".join(filter(None, (place, _write_message(mistake, model))))
        for place, mistake in reversed(by_place.items())
    ]
    shown = lines[:ERRORS_SHOWN]
    while sum(map(len, shown)) > MOST_TEXT and len(shown) > 1:
        shown.pop()
    if len(lines) > len(shown):
        shown.append(f"... and {len(lines) - len(shown)} more")
    return InputError("\n".join(shown))


def _drop_echoes(errors: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The errors, but for lists that are too short only because an entry of theirs is wrong."""
    # pydantic leaves a wrong entry out, and then finds none in the list.
    wrong = {mistake["loc"][:end] for mistake in errors for end in range(len(mistake["loc"]))}
    return [
        mistake
        for mistake in errors
        if mistake["type"] != "too_short" or mistake["loc"] not in wrong
    ]


def _write_message(error: Mapping[str, Any], model: type[pydantic.BaseModel] | None) -> str:
    """A message on one value, in our words where pydantic's need its manual."""
    # pydantic's prefix of what our own validators raise.
    text = str(error["msg"]).removeprefix("Value error, ")
    match error["type"]:
        case "extra_forbidden":
            return "; ".join(filter(None, ("unknown key", _advise_on_key(error["loc"], model))))
        case "missing":
            return "this key is missing"
        case "model_type":
            return f"expected a mapping, got {shorten(error['input'])}"
        case "tuple_type":
            return f"expected a list, got {shorten(error['input'])}"
        case "value_error":
            return text
    for pattern, words in PLAIN_WORDS:
        text = re.sub(pattern, words, text)
    return f"{text[:1].lower()}{text[1:MOST_CAUSE]}, got {shorten(error['input'])}"


def _advise_on_key(keypath: KeyPath, model: type[pydantic.BaseModel] | None) -> str:
    """The key that is probably meant by an unknown one: beside it, below it, or at the top."""
    key, names = str(keypath[-1]), _list_fields(model, keypath[:-1])
    if not names:
        return ""
    if key in _list_fields(model, ()):
        return f"{key!r} belongs at the top of the file"
    if find_meant(key, names) is None:
        for above in names:
            inner = _list_fields(model, (*keypath[:-1], above))
            below = key if key in inner else find_meant(key, inner)
            if below is not None:
                return f"did you mean {below!r} under {above!r}?"
    return suggest_name(key, names)


def _list_fields(model: type[pydantic.BaseModel] | None, keypath: KeyPath) -> list[str]:
    """The keys of the model that `keypath` leads to, from `model` down."""
    # Positions in lists are no fields: `_find_model` has seen through the list already.
    for part in keypath:
        annotation = None if model is None else model.model_fields.get(str(part))
        if annotation is not None:
            model = _find_model(annotation.annotation)
    return [] if model is None else list(model.model_fields)


def _find_model(annotation: object) -> type[pydantic.BaseModel] | None:
    """The first pydantic model in an annotation such as `tuple[Level, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    models = (_find_model(part) for part in get_args(annotation))
    return next((model for model in models if model is not None), None)
