"""YAML files with line numbers, and messages about mistakes in them.

Plain YAML alone is accepted: mappings with names as keys, lists, texts and numbers. YAML 1.1, as
PyYAML reads it, takes "1e9" for a text (it wants a dot and a sign), 1:30 for 90, 010 for 8, and
silently takes the last of two equal keys. Here 1e9 is a number, 1:30 and 010 are texts, and
repeated keys are refused. So are tags, other keys, control characters, and aliases that expand too
far (600 bytes of them can fill any memory).
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import pydantic
import yaml

from paradl.grids.reading.errors import (
    MOST_TEXT,
    InputError,
    find_meant,
    format_text,
    shorten,
    suggest_name,
)
from paradl.grids.reading.textfile import read_text

# The most hostile files of these sizes take PyYAML one second.
MOST_BYTES = 500_000
MOST_NODES = 30_000  # with aliases expanded

DEEPEST = 100  # levels; reading time grows with their square
MOST_DIGITS = 400
FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
# Numbers to the bases 60 and 8, which are slips here: a range, and digits filled up with zeros.
OTHER_BASES = re.compile(r".*:.*|[-+]?0[0-7_]+")
# Control characters except tabs and line ends, and halves of surrogate pairs.
NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")

TEXT = "tag:yaml.org,2002:str"
NAMES = (TEXT, "tag:yaml.org,2002:merge")
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_nodes(text: str) -> tuple[yaml.Node | None, object]:
    """Return the nodes of a document and their data; YAMLError, ValueError: what is wrong."""
    loader = _Loader(text)
    root = loader.get_single_node()
    return root, None if root is None else loader.construct_object(root, deep=True)


class _Loader(yaml.SafeLoader):
    """Safe YAML where 1e9 is a number; anything else that is not plain is an error."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._nodes = 0  # so far, with aliases expanded
        self._sizes: dict[yaml.Node, int] = {}  # the same for each complete part

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node; error if it is not plain or the document is too large."""
        parser: Any = self  # the stubs have no events
        event, before = parser.peek_event(), self._nodes
        if getattr(event, "tag", None) is not None:
            raise _make_error("expected a plain value, got a tag", event.start_mark)
        self._depth += 1
        if self._depth > DEEPEST:
            raise _make_error(f"nested deeper than {DEEPEST} levels", event.start_mark)
        node = super().compose_node(parent, index)
        assert node is not None
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent) and node not in self._sizes:
            raise _make_error("an alias refers to a part that contains it", event.start_mark)
        self._nodes += self._sizes.get(node, 1)
        if self._nodes > MOST_NODES:
            raise _make_error(f"more than {MOST_NODES:,} values", event.start_mark)
        self._sizes.setdefault(node, self._nodes - before)
        if isinstance(node, yaml.ScalarNode):
            if odd := NO_TEXT.search(node.value):
                raise _make_error(f"not a text character: {shorten(odd[0])}", node.start_mark)
            if node.tag in NUMBERS and len(node.value) > MOST_DIGITS:
                raise _make_error(f"a number of {len(node.value):,} characters", node.start_mark)
        if node.tag in NUMBERS and OTHER_BASES.fullmatch(node.value):
            node.tag = TEXT
        return node

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        """Return the mapping; error if a key is no name or is repeated."""
        names: set[str] = set()
        for key, _ in node.value:
            if key.tag not in NAMES:
                advice = "quote it; lists are in brackets, such as [1, 64]"
                raise _make_error(f"expected a name as a key; {advice}", key.start_mark)
            if key.value in names:
                raise _make_error(f"the key {shorten(key.value)} is repeated", key.start_mark)
            names.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))


class _Dumper(yaml.SafeDumper):
    """Quotes texts that our reader, unlike YAML 1.1, would take for numbers."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))


def write_plain(value: object, **options: Any) -> str:
    """Write a value as YAML that `read_nodes` reads as the same. options: of `yaml.dump`."""
    text: str = yaml.dump(value, None, _Dumper, sort_keys=False, **options)
    return text


def write_flow(value: object) -> str:
    """Write a value as YAML on one line."""
    # In a list, since YAML ends a plain value by itself with an end-of-document mark. Uncut, since
    # readers do not join lines.
    return write_plain([value], default_flow_style=True, width=10**9).strip()[1:-1]


def _make_error(problem: str, mark: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, mark)


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
        what = f"cannot be read as {_name_syntax(path)}: {error}"
        raise InputError(what, where=str(path)) from None
    if root is None or not isinstance(data, dict):
        kind = "nothing" if data is None else f"a {type(data).__name__}"
        advice = "write 'key: value' lines"
        if path.suffix == ".json":
            advice = 'write {"key": value}'
        raise InputError(f"expected a mapping, got {kind}", where=str(path), advice=advice)
    return Document(path, data, root)


def _name_syntax(path: Path) -> str:
    return "JSON" if path.suffix == ".json" else "YAML"


def _explain_syntax(path: Path, error: yaml.YAMLError) -> InputError:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        what = f"{_name_syntax(path)} syntax: {str(error).splitlines()[0]}"
        return InputError(what, where=str(path))
    what = f"{_name_syntax(path)} syntax: {error.problem}"
    return InputError(what, where=f"{path}:{error.problem_mark.line + 1}")


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
    # The page on wrong keys, if there are any, or else that of the first wrong value.
    causes = (mistake.get("ctx", {}).get("error") for mistake in errors)
    pages = (cause.page for cause in causes if isinstance(cause, InputError) and cause.page)
    is_key = any(mistake["type"] in WRONG_KEYS for mistake in errors)
    return InputError("\n".join(shown), page="wrong-key" if is_key else next(pages, "wrong-value"))


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
    for above in names if find_meant(key, names) is None else ():
        inner = _list_fields(model, (*keypath[:-1], above))
        if below := key if key in inner else find_meant(key, inner):
            return f"did you mean {below!r} under {above!r}?"
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
