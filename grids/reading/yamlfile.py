"""YAML files with line numbers, and messages about mistakes in them.

`plainyaml.py` decides what is accepted; here are documents, and translations of pydantic's errors.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import pydantic
import yaml

from paradl.grids.reading.errors import (
    MOST_TEXT,
    ErrorPage,
    InputError,
    format_text,
    shorten,
    suggest_name,
)
from paradl.grids.reading.plainyaml import MOST_BYTES, read_nodes
from paradl.grids.reading.textfile import read_text

ERRORS_SHOWN = 5  # one mistake often causes others; fewer if the message would be too long
MOST_CAUSE = 160  # characters of pydantic's own words, which may quote a user's value
# pydantic's phrases, and plainer ones.
PLAIN_WORDS = (
    (r"^Input should be a valid integer\b.*", "expected a whole number"),
    (r"^Input should be a valid number\b.*", "expected a number"),
    (r"^Input should be a valid string$", "expected a text"),
    (r"^Input should be ", "expected "),
)

KeyPath = tuple[str | int, ...]
Where = Callable[[KeyPath], str]  # the place of a key, with which messages begin


@dataclass(frozen=True)
class Document:
    """The mapping in a YAML file, and the lines of its parts."""

    path: Path
    data: dict[str, object]
    root: yaml.Node = field(repr=False)

    def line(self, keypath: KeyPath) -> int | None:
        """Return the line of the key, or of the nearest parent in the file."""
        node, line = self.root, None
        for part in keypath:
            mark, node = _find_child(node, part)
            line = line if mark is None else mark.line + 1
        return line

    def where(self, keypath: KeyPath = ()) -> str:
        """Return file and line of a key, with which messages begin."""
        line = self.line(keypath)
        return str(self.path) if line is None else f"{self.path}:{line}"


Source = Document | str  # a file, or the name in messages of data without a file


class KeyLocation(NamedTuple):
    """A key of a file, or of data without a file."""

    source: Source
    keypath: KeyPath

    @property
    def text(self) -> str:
        """The place with which messages begin, file:line: key."""
        source, keypath = self
        where = source if isinstance(source, str) else source.where(keypath)
        # For unions pydantic adds the type it tried: "literal['same']".
        key = ".".join(format_text(str(part)) for part in keypath if "[" not in str(part))
        return ": ".join(filter(None, (where, key)))


Locate = Callable[[KeyPath], KeyLocation]
Checked = TypeVar("Checked", bound=pydantic.BaseModel)


def _find_child(node: yaml.Node, part: str | int) -> tuple[yaml.Mark | None, yaml.Node]:
    """Return the mark and the node of a part; (None, node) if there is none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        child = node.value[part]
        return child.start_mark, child
    return None, node


def load(path: Path) -> Document:
    """Load a YAML or JSON file with one mapping; InputError: anything else."""
    text = read_text(path, MOST_BYTES)
    if path.suffix == ".json":
        # JSON is YAML, too, but for tabs, with which some tools indent it; its texts have none.
        text = text.replace("\t", " ")
    try:
        root, data = read_nodes(text)
    except yaml.YAMLError as error:
        raise _explain_syntax(path, error) from None
    # PyYAML's constructors raise these, such as for 2020-13-45, which it takes for a date.
    except (ValueError, ArithmeticError) as error:
        raise InputError(f"cannot be read as YAML: {error}", where=str(path)) from None
    if root is None or not isinstance(data, dict):
        kind = "nothing" if data is None else f"a {type(data).__name__}"
        raise InputError(
            f"expected a mapping, got {kind}", where=str(path), advice="write 'key: value' lines"
        )
    return Document(path, data, root)


def _explain_syntax(path: Path, error: yaml.YAMLError) -> InputError:
    """Return the error of a text that is not YAML, with its line."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return InputError(f"YAML syntax: {str(error).splitlines()[0]}", where=str(path))
    return InputError(
        f"YAML syntax: {error.problem}", where=f"{path}:{error.problem_mark.line + 1}"
    )


WRONG_KEYS = ("missing", "extra_forbidden")  # types of pydantic's errors


def validate(form: type[Checked], data: object, source: Source | Locate) -> Checked:
    """Return the record of plain data; InputError begins with the place in `source`."""
    try:
        return form.model_validate(data)
    except pydantic.ValidationError as error:
        raise explain_error(error, source, form) from None


def explain_error(
    error: pydantic.ValidationError,
    source: Source | Locate,
    model: type[pydantic.BaseModel] | None = None,
) -> InputError:
    """Return the error that lists a user's mistakes, one line "file:line: key: message" each.

    model: the validated class, to suggest a name for a misspelt key. source: may be a function that
    locates keys of expanded data in their file.
    """
    locate = source if callable(source) else lambda keypath: KeyLocation(source, keypath)
    errors = _drop_echoes(error.errors(include_url=False))
    # A mistake in a repeated block counts once.
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
    return InputError("\n".join(shown), page=_choose_page(errors))


def _choose_page(errors: Sequence[Mapping[str, Any]]) -> ErrorPage:
    """Choose the page on wrong keys, if there are any, or else that of the first wrong value."""
    if any(mistake["type"] in WRONG_KEYS for mistake in errors):
        return "wrong-key"
    causes = (mistake.get("ctx", {}).get("error") for mistake in errors)
    pages = (cause.page for cause in causes if isinstance(cause, InputError) and cause.page)
    return next(pages, "wrong-value")


def _drop_echoes(errors: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Drop errors of lists that are too short only because of a wrong entry."""
    # pydantic drops a wrong entry, and may then complain about an empty list.
    wrong = {mistake["loc"][:end] for mistake in errors for end in range(len(mistake["loc"]))}
    return [
        mistake
        for mistake in errors
        if mistake["type"] != "too_short" or mistake["loc"] not in wrong
    ]


def _write_message(error: Mapping[str, Any], model: type[pydantic.BaseModel] | None) -> str:
    """Return the message for one value, in our words where pydantic's need its manual."""
    # pydantic adds this prefix to errors of our own validators.
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
    """Advise on an unknown key: a similar one beside it, or where it belongs."""
    key, names = str(keypath[-1]), _list_fields(model, keypath[:-1])
    if key in _list_fields(model, ()):
        return f"{key!r} belongs at the top of the file"
    above = (name for name in names if key in _list_fields(model, (*keypath[:-1], name)))
    if below := next(above, None):
        return f"{key!r} belongs under {below!r}"
    return suggest_name(key, names) if names else ""


def _list_fields(model: type[pydantic.BaseModel] | None, keypath: KeyPath) -> list[str]:
    """List the keys of the model at `keypath`, starting from `model`."""
    # Positions in lists are skipped: `_find_model` looks through lists.
    for part in keypath:
        annotation = None if model is None else model.model_fields.get(str(part))
        if annotation is not None:
            model = _find_model(annotation.annotation)
    return [] if model is None else list(model.model_fields)


def _find_model(annotation: object) -> type[pydantic.BaseModel] | None:
    """Return the first pydantic model in an annotation such as `tuple[Level, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    models = (_find_model(part) for part in get_args(annotation))
    return next((model for model in models if model is not None), None)


def join_keys(keypath: KeyPath) -> str:
    """Return the place of a key if there is no file."""
    return ".".join(map(str, keypath))
