"""YAML files, with the line numbers that a good error message needs.

YAML itself reads "1e9" as a text (its version 1.1, which PyYAML follows, wants a dot and a sign)
and takes the last of two equal keys in silence: here the first is a number and the second is
refused.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

import pydantic
import yaml

from grids.errors import InputError, nearest

ERRORS_SHOWN = 5

FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+")

KeyPath = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 1e9 is a number and a repeated key an error."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands twice", key.start_mark
                )
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))


@dataclass(frozen=True)
class Document:
    """The mapping that a YAML file holds, and where in the file each part of it stands."""

    path: Path
    data: dict[str, object]
    root: yaml.Node = field(repr=False)

    def line(self, keypath: KeyPath) -> int | None:
        """The line of the key, or of the nearest part above it that is in the file."""
        node, line = self.root, None
        for part in keypath:
            mark, node = _child(node, part)
            line = line if mark is None else mark.line + 1
        return line

    def where(self, keypath: KeyPath = ()) -> str:
        line = self.line(keypath)
        return str(self.path) if line is None else f"{self.path}:{line}"


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Mark | None, yaml.Node]:
    """Where `part` of a node begins; (None, node) where it has no such part."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        child = node.value[part]
        return child.start_mark, child
    return None, node


def load(path: Path) -> Document:
    """Read a YAML file that holds one mapping."""
    text = read_text(path)
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        # Deep: a part that contains itself (an alias) is then found here, not by an endless walk.
        data = None if root is None else loader.construct_object(root, deep=True)
    except yaml.YAMLError as error:
        raise _syntax(path, error) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"no YAML that can be read: {error}", where=str(path)) from None
    if root is None or not isinstance(data, dict):
        found = "nothing" if data is None else f"a {type(data).__name__}"
        raise InputError(
            f"expected a mapping, got {found}", where=str(path), advice="write 'key: value' lines"
        )
    return Document(path, {str(key): value for key, value in data.items()}, root)


def read_text(path: Path) -> str:
    """The text of a file of the user's."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", where=str(path), advice="check the path") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(
            "not UTF-8 text", where=f"{path}:{line}", advice="is it the right file?"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read: {reason}", where=str(path)) from None


def _syntax(path: Path, error: yaml.YAMLError) -> InputError:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    problem = (
        error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error).splitlines()[0]
    )
    where = str(path) if mark is None else f"{path}:{mark.line + 1}"
    return InputError(f"YAML syntax: {problem}", where=where)


def explain(
    error: pydantic.ValidationError,
    source: Document | str,
    model: type[pydantic.BaseModel] | None = None,
) -> InputError:
    """What pydantic found, as one "file:line: key: message" a line.

    `model` is what was validated; with it, a misspelt key gets the nearest one that exists.
    """
    found = error.errors(include_url=False)
    lines = [_explain_one(each, source, model) for each in found[:ERRORS_SHOWN]]
    if len(found) > ERRORS_SHOWN:
        lines.append(f"... and {len(found) - ERRORS_SHOWN} more")
    return InputError("\n".join(lines))


def _explain_one(
    error: Mapping[str, object], source: Document | str, model: type[pydantic.BaseModel] | None
) -> str:
    keypath = cast(KeyPath, error["loc"])
    where = source if isinstance(source, str) else source.where(keypath)
    # Where a value may be of several types, pydantic adds the type it tried: "literal['same']".
    key = ".".join(str(part) for part in keypath if "[" not in str(part))
    return ": ".join(part for part in (where, key, _message(error, keypath, model)) if part)


def _message(
    error: Mapping[str, object], keypath: KeyPath, model: type[pydantic.BaseModel] | None
) -> str:
    text = str(error["msg"]).removeprefix("Value error, ")
    match error["type"]:
        case "extra_forbidden":
            known = _fields(model, keypath[:-1])
            return f"unknown key; {nearest(str(keypath[-1]), known)}" if known else "unknown key"
        case "missing":
            return "this key is missing"
        case "model_type":
            return f"expected a mapping, got {_shortened(error['input'])}"
        case "tuple_type":
            return f"expected a list, got {_shortened(error['input'])}"
        case "value_error":
            return text
    return f"{text[:1].lower()}{text[1:]}, got {_shortened(error['input'])}"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fields(model: type[pydantic.BaseModel] | None, keypath: KeyPath) -> list[str]:
    """The keys of the model that `keypath` leads to, from `model` down."""
    for part in keypath:
        annotation = None if model is None else model.model_fields.get(str(part))
        if annotation is not None:
            model = _model_in(annotation.annotation)
    return [] if model is None else list(model.model_fields)


def _model_in(annotation: object) -> type[pydantic.BaseModel] | None:
    """The first pydantic model in an annotation such as `tuple[Level, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    found = (_model_in(part) for part in get_args(annotation))
    return next((each for each in found if each is not None), None)
