"""Model files with settings and words, and the plain steps they expand to.

    settings: {stages: required, width: 64}   # required: no default
    words:                                    # the file's own steps
      convolve:
        settings: {filters: required, kernel: 3}
        layers:
          - conv: {filters: $filters, kernel: $kernel, padding: same, bias: false}
          - batchnorm
          - relu
    layers:
      - convolve: {filters: $width, kernel: 7}
      - repeat:                               # `index` counts from 0; layers are in sequence
          times: $(len(stages))
          index: stage
          layers:
            - set: {filters: $(width * 2 ** stage)}
            - if: $(stage > 0)
              then: [{maxpool: 2}]
              else: []
            - convolve: $filters

Any text below `layers` may contain expressions (grids/models/files/expressions.py). A word sees the
file's settings and its own; `set` lasts until the end of the file, or of its word. Without `index`
a repetition stays one plain step, which names its layers itself. A default may be an expression of
earlier settings; a list of one mapping with a required key is the form of each item of a list.

A family is such a file, in the catalogue or of the user's own: `{name: resnet, stages: [3, 4, 6]}`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple, Self

from pydantic import (
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from paradl.grids.entries.entry import Record
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.models.files.expressions import fill_in
from paradl.grids.models.steps.step import Steps
from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.grids.reading.yamlfile import (
    DEEPEST,
    KeyLocation,
    KeyPath,
    Where,
    explain_error,
    join_keys,
    load,
)

REQUIRED = "required"

Form = dict[str, object]
Names = Mapping[str, object]


def go_below(where: Where, *keys: str | int) -> Where:
    """Return `where` for places below these keys."""
    return lambda path: where((*keys, *path))


def fill_settings(form: Form, given: object, names: Names, where: Where) -> dict[str, object]:
    """Return the given settings plus defaults; InputError for an unknown or missing setting.

    names: further names for expressions. where: turns a setting's key path into its place.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"expected a mapping, got {shorten(given)}", where=where(()))
    refuse_unknown(given, form, where)
    filled: dict[str, object] = {}
    for key, default in form.items():
        if key not in given and is_required(default):
            raise InputError("this key is missing", where=where((key,)), page="wrong-key")
        if key in given and isinstance(default, list):
            filled[key] = _fill_items(default, given[key], go_below(where, key))
        elif key in given:
            filled[key] = given[key]
        else:
            known = {**names, **filled}
            filled[key] = fill_in(default, known) if isinstance(default, str) else default
    return filled


def _fill_items(form: list[Any], given: object, where: Where) -> object:
    """Return a list, whose items get defaults if the form describes them."""
    if not is_required(form):
        return given
    if not isinstance(given, list):
        raise InputError(f"expected a list, got {shorten(given)}", where=where(()))
    return [
        # Without names: defaults of an item follow from the item alone.
        fill_settings(form[0], item, {}, go_below(where, position))
        for position, item in enumerate(given)
    ]


def is_required(form: object) -> bool:
    """True if a setting has no default."""
    if isinstance(form, list) and len(form) == 1 and isinstance(form[0], dict):
        return REQUIRED in form[0].values()
    return form == REQUIRED


def refuse_unknown(given: Mapping[str, object], known: Mapping[str, object], where: Where) -> None:
    """Raise InputError for an unknown key."""
    for key in given:
        if key not in known:
            advice = suggest_name(key, known)
            raise InputError("unknown key", where=where((key,)), advice=advice, page="wrong-key")


MOST_TIMES = 1000
# A network has at most 5,000 layers, few of them with more than 20 values.
MOST_VALUES = 200_000


class Word(Record):
    """A step defined in the file.

    settings: names with defaults. layers: those it expands to.
    """

    settings: Form = Field(default_factory=dict)
    layers: list[Any]


class Template(Record):
    """Layers of a file, to be expanded with its settings and words."""

    settings: Form = Field(default_factory=dict)
    words: dict[str, Word] = Field(default_factory=dict)
    layers: list[Any]

    def write(self, given: Mapping[str, object], where: Where) -> "Written":
        """Expand to plain steps; InputError begins with `where` of its place."""
        settings = fill_settings(self.settings, given, {}, go_below(where, "settings"))
        writer = _Writer(self.words, settings, where)
        try:
            # A copy of the settings, to which `set` adds.
            layers = writer.write_list(self.layers, _Spot({**settings}, ("layers",), ("layers",)))
        except RecursionError:
            raise InputError(
                "words refer to each other in a circle", where=where(("words",))
            ) from None
        return Written(layers, writer.origins)


@dataclass(frozen=True)
class Written:
    """Plain steps, and the place of each in the template."""

    layers: list[object]
    origins: Mapping[KeyPath, KeyPath]

    def find_origin(self, keypath: KeyPath) -> KeyPath:
        """Map a place in the plain steps to its place in the template."""
        for end in range(len(keypath), 0, -1):
            if keypath[:end] in self.origins:
                return (*self.origins[keypath[:end]], *keypath[end:])
        return keypath


class _Spot(NamedTuple):
    """A place in the template: names known there, its key path, and the key path it expands to.

    Not changed by `_replace`: with it, to read 85 models took 2.25 s of CPU, not 2.07 (2026-11).
    """

    names: dict[str, object]
    source: KeyPath
    target: KeyPath

    def read(self, *keys: str | int) -> "_Spot":
        """Return the spot of a part that expands to the same place."""
        return _Spot(self.names, (*self.source, *keys), self.target)

    def enter(self, key: str) -> "_Spot":
        """Return the spot of a part that expands to a part."""
        return _Spot(self.names, (*self.source, key), (*self.target, key))


@dataclass
class _Writer:
    """Expands steps, and counts the values so that no file fills the memory."""

    words: Mapping[str, Word]
    settings: Mapping[str, object]
    where: Where
    origins: dict[KeyPath, KeyPath] = field(default_factory=dict)
    values: int = 0

    def write_list(self, items: Sequence[object], spot: _Spot) -> list[object]:
        """Return the items with repetitions, choices and words expanded."""
        written: list[object] = []
        self._extend(written, items, spot)
        return written

    def _extend(self, written: list[object], items: Sequence[Any], spot: _Spot) -> None:
        for position, item in enumerate(items):
            step = spot.read(position)
            self._count(step)
            match item:
                case {"if": _}:
                    self._choose(written, item, step)
                case {"set": dict(values), **others} if not others:
                    for key, value in values.items():
                        spot.names[key] = self._write(value, step.read("set", key))
                case {"repeat": {"index": _} as settings, **others} if not others:
                    self._repeat(written, settings, step.read("repeat"))
                case str(word) if word in self.words:
                    self._expand(written, word, {}, step)
                case dict(entry) if len(entry) == 1 and next(iter(entry)) in self.words:
                    [(word, given)] = entry.items()
                    self._expand(written, word, given, step.read(word))
                case _:
                    step = step._replace(target=(*spot.target, len(written)))
                    self.origins[step.target] = step.source
                    written.append(self._write(item, step))

    def _choose(self, written: list[object], choice: Mapping[str, object], spot: _Spot) -> None:
        refuse_unknown(
            choice, {"if": None, "then": None, "else": None}, go_below(self.where, *spot.source)
        )
        holds = self._write(choice["if"], spot.read("if"))
        # Numbers and lists are refused: as conditions they are probably mistakes.
        if not isinstance(holds, bool):
            what = f"expected true or false, as of $(stage > 0), got {shorten(holds)}"
            raise InputError(what, where=self.where(spot.read("if").source))
        branch = "then" if holds else "else"
        self._extend_from(written, choice.get(branch, []), spot.read(branch))

    def _repeat(self, written: list[object], given: Mapping[str, object], spot: _Spot) -> None:
        form: Form = {"times": "required", "layers": "required", "index": "required"}
        repeat = fill_settings(form, given, {}, go_below(self.where, *spot.source))
        times = self._write(repeat["times"], spot.read("times"))
        # The exact type, since True is an int.
        if type(times) is not int or not 0 <= times <= MOST_TIMES:
            raise InputError(
                f"expected a whole number from 0 to {MOST_TIMES:,}, got {shorten(times)} of "
                f"{shorten(repeat['times'])}",
                where=self.where(spot.read("times").source),
            )
        for number in range(times):
            self._count(spot)
            spot.names[str(repeat["index"])] = number
            self._extend_from(written, repeat["layers"], spot.read("layers"))

    def _expand(self, written: list[object], word: str, given: object, spot: _Spot) -> None:
        form, layers = self.words[word].settings, self.words[word].layers
        filled = self._write(given, spot)
        if not isinstance(filled, Mapping):  # a bare value is the first setting
            filled = {next(iter(form), "name"): filled}
        names = fill_settings(form, filled, self.settings, go_below(self.where, *spot.source))
        within = _Spot({**self.settings, **names}, ("words", word, "layers"), spot.target)
        self._extend(written, layers, within)

    def _extend_from(self, written: list[object], steps: object, spot: _Spot) -> None:
        if not isinstance(steps, list):
            raise InputError(
                f"expected a list of steps, got {shorten(steps)}", where=self.where(spot.source)
            )
        self._extend(written, steps, spot)

    def _write(self, value: object, spot: _Spot) -> object:
        """Return a value with its expressions substituted."""
        self._count(spot)
        match value:
            case str():
                # Most texts are plain: without this, writing a decoder takes a third longer.
                return self._copy(self._fill_in(value, spot), spot) if "$" in value else value
            case dict():
                return {
                    str(self._fill_in(key, spot)) if "$" in key else key: self._write(
                        part, spot.enter(key)
                    )
                    for key, part in value.items()
                }
            case list():
                return self.write_list(value, spot)
        return value

    def _fill_in(self, text: str, spot: _Spot) -> object:
        # Without a context for each text, which takes a quarter of writing a family.
        try:
            return fill_in(text, spot.names)
        except InputError as error:
            raise InputError(str(error), where=self.where(spot.source)) from None

    def _copy(self, value: object, spot: _Spot) -> object:
        self._count(spot)
        if isinstance(value, dict):
            return {key: self._copy(part, spot) for key, part in value.items()}
        return [self._copy(part, spot) for part in value] if isinstance(value, list) else value

    def _count(self, spot: _Spot) -> None:
        """Raise InputError for more values than a network has, or for deeper nesting."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise InputError(f"more than {MOST_VALUES:,} values", where=self.where(spot.source[:1]))
        if len(spot.target) > DEEPEST:
            raise InputError(f"nested deeper than {DEEPEST} levels", where=self.where(spot.source))


FAMILIES = CATALOGUE / "families"
_STEPS: TypeAdapter[Steps] = TypeAdapter(Steps)


@cache
def list_families() -> tuple[str, ...]:
    """Names of the families in the catalogue."""
    return tuple(sorted(path.stem for path in FAMILIES.glob("*.yaml")))


@cache
def load_family(name: str) -> Template:
    """Load a family of the catalogue: a template, or one `like` another, with other settings."""
    data = load(FAMILIES / f"{name}.yaml").data
    if "like" not in data:
        return Template.model_validate(data)
    base: Any = load_family(str(data["like"]))
    return Template(settings=base.settings | data["settings"], words=base.words, layers=base.layers)


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
