"""Model files with settings and words of their own, and the plain steps that they stand for.

    settings: {stages: required, width: 64}   # grids/models/forms.py
    words:                                    # steps of the file's own
      convolve:
        settings: {filters: required, kernel: 3}
        layers:
          - conv: {filters: $filters, kernel: $kernel, padding: same, bias: false}
          - batchnorm
          - relu
    layers:
      - convolve: {filters: $width, kernel: 7}
      - repeat:                               # `index` counts from 0; layers stand in a row
          times: $(len(stages))
          index: stage
          layers:
            - set: {filters: $(width * 2 ** stage)}
            - if: $(stage > 0)
              then: [{maxpool: 2}]
              else: []
            - convolve: $filters

Any text below `layers` may hold expressions (grids/models/expressions.py). A word sees the file's
settings and its own; `set` holds until the end of the file, or of the word it stands in. Without
`index` a repetition is one plain step, which names its layers itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import Field

from grids.entries.entry import Record
from grids.models.expressions import fill_in
from grids.models.forms import Form, Where, fill_settings, go_below, refuse_unknown
from grids.reading.errors import InputError, shorten
from grids.reading.plainyaml import DEEPEST
from grids.reading.yamlfile import KeyPath

MOST_TIMES = 1000
# Of 5,000 layers, the most that a network has, few have more than 20 values each.
MOST_VALUES = 200_000


class Word(Record):
    """A step of a file's own: its settings, and the layers that it stands for."""

    settings: Form = Field(default_factory=dict)
    layers: list[Any]


class Template(Record):
    """The layers of a file, which its settings and words complete."""

    settings: Form = Field(default_factory=dict)
    words: dict[str, Word] = Field(default_factory=dict)
    layers: list[Any]

    def write(self, given: Mapping[str, object], where: Where) -> "Written":
        """The plain steps for these settings; InputError begins with `where` of its place."""
        settings = fill_settings(self.settings, given, {}, go_below(where, "settings"))
        writer = _Writer(self.words, settings, where)
        try:
            layers = writer.write_list(self.layers, _Spot({**settings}, ("layers",), ("layers",)))
        except RecursionError:
            raise InputError(
                "words refer to each other in a circle", where=where(("words",))
            ) from None
        return Written(layers, writer.origins)


@dataclass(frozen=True)
class Written:
    """Plain steps, and where in the template each of them stands."""

    layers: list[object]
    origins: Mapping[KeyPath, KeyPath]

    def find_origin(self, keypath: KeyPath) -> KeyPath:
        """The place in the template of a place in the plain steps."""
        for end in range(len(keypath), 0, -1):
            if keypath[:end] in self.origins:
                return (*self.origins[keypath[:end]], *keypath[end:])
        return keypath


class _Spot(NamedTuple):
    """A place in the template: the names it knows, its key path, and where its text is written."""

    names: dict[str, object]
    source: KeyPath
    target: KeyPath

    def read(self, *keys: str | int) -> "_Spot":
        """The spot of a part that is written to the same place."""
        return self._replace(source=(*self.source, *keys))

    def enter(self, key: str) -> "_Spot":
        """The spot of a part that is written as a part."""
        return self._replace(source=(*self.source, key), target=(*self.target, key))


@dataclass
class _Writer:
    """Writes steps; counts the values that it has written, so that no file fills the memory."""

    words: Mapping[str, Word]
    settings: Mapping[str, object]
    where: Where
    origins: dict[KeyPath, KeyPath] = field(default_factory=dict)
    values: int = 0

    def write_list(self, items: Sequence[object], spot: _Spot) -> list[object]:
        """The items, with repetitions, choices and words as the steps that they stand for."""
        written: list[object] = []
        self._extend(written, items, spot)
        return written

    def _extend(self, written: list[object], items: Sequence[Any], spot: _Spot) -> None:
        for position, item in enumerate(items):
            here = spot.read(position)
            self._count(here)
            match item:
                case {"if": _}:
                    self._choose(written, item, here)
                case {"set": dict(values), **others} if not others:
                    for key, value in values.items():
                        spot.names[key] = self._write(value, here.read("set", key))
                case {"repeat": {"index": _} as settings, **others} if not others:
                    self._repeat(written, settings, here.read("repeat"))
                case str(word) if word in self.words:
                    self._expand(written, word, {}, here)
                case dict(step) if len(step) == 1 and next(iter(step)) in self.words:
                    [(word, given)] = step.items()
                    self._expand(written, word, given, here.read(word))
                case _:
                    here = here._replace(target=(*spot.target, len(written)))
                    self.origins[here.target] = here.source
                    written.append(self._write(item, here))

    def _choose(self, written: list[object], choice: Mapping[str, object], spot: _Spot) -> None:
        """The steps of `then`, or of `else`."""
        refuse_unknown(
            choice, {"if": None, "then": None, "else": None}, go_below(self.where, *spot.source)
        )
        holds = self._write(choice["if"], spot.read("if"))
        if not isinstance(holds, bool):
            raise InputError(
                f"expected true or false, got {shorten(holds)}",
                where=self.where(spot.read("if").source),
                advice="compare, such as $(stage > 0)",
            )
        branch = "then" if holds else "else"
        self._extend_from(written, choice.get(branch, []), spot.read(branch))

    def _repeat(self, written: list[object], given: Mapping[str, object], spot: _Spot) -> None:
        """Layers several times, with the number of the repetition under a name."""
        form: Form = {"times": "required", "layers": "required", "index": "required"}
        repeat = fill_settings(form, given, {}, go_below(self.where, *spot.source))
        times = self._write(repeat["times"], spot.read("times"))
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
        """The layers of a word of the file's own."""
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
        """A value with its expressions filled in."""
        self._count(spot)
        match value:
            case str():
                return self._copy(self._fill_in(value, spot), spot)
            case dict():
                return {
                    str(self._fill_in(key, spot)): self._write(part, spot.enter(key))
                    for key, part in value.items()
                }
            case list():
                return self.write_list(value, spot)
        return value

    def _fill_in(self, text: str, spot: _Spot) -> object:
        try:
            return fill_in(text, spot.names)
        except InputError as error:
            raise InputError(str(error), where=self.where(spot.source)) from None

    def _copy(self, value: object, spot: _Spot) -> object:
        """A copy of an expression's value, whose parts count."""
        self._count(spot)
        if isinstance(value, dict):
            return {key: self._copy(part, spot) for key, part in value.items()}
        return [self._copy(part, spot) for part in value] if isinstance(value, list) else value

    def _count(self, spot: _Spot) -> None:
        """InputError: more values than a network has, or deeper inside each other."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise InputError(f"more than {MOST_VALUES:,} values", where=self.where(spot.source[:1]))
        if len(spot.target) > DEEPEST:
            raise InputError(f"nested deeper than {DEEPEST} levels", where=self.where(spot.source))
