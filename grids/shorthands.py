"""Words of planners that stand for values of a spec: a global batch, a sequence, tokens."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any, TypedDict

from paradl.grids.axes import expand_axis, read_item
from paradl.grids.entries.datasets import LENGTH
from paradl.grids.entries.names import split_labels
from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.entries.quantity import Parameter
from paradl.grids.library import look_up
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.transformers import find_longest
from paradl.grids.reading.errors import InputError, add_place, find_meant
from paradl.grids.reading.units import AMOUNTS, parse_quantity
from paradl.grids.reading.yamlfile import join_keys

Values = str | int | float | Sequence[object] | Mapping[str, object]

COUNTS = {
    name: Parameter(name, "1", meaning, 1, 2**40, whole=True)
    for name, meaning in (
        ("global_batch", "the number of samples per iteration"),
        ("sequence", "the number of tokens of a sequence"),
    )
}
TEXT = "pile"  # the samples of a network that reads text, unless others are given


class Words(TypedDict, total=False):
    """The same as keyword arguments."""

    global_batch: Values | None
    sequence: Values | None
    tokens: float | str | None
    precision: str | None


def expect_system(system: Values | None) -> Values:
    """Return the machine of a question, which is not guessed. InputError: none is named."""
    if system is None:
        advice = "such as dgx-h100; paradl list systems has those of the catalogue"
        raise InputError("no machine is named", where="system", advice=advice)
    return system


def expect_words(question: Callable[..., object], words: Mapping[str, object]) -> None:
    """Raise TypeError for a keyword of a question that is no word of planners, with the nearest."""
    for name in words:
        if name not in Words.__annotations__:
            meant = find_meant(name, (*signature(question).parameters, *Words.__annotations__))
            advice = f"; did you mean {meant!r}?" if meant else ""
            raise TypeError(f"{question.__name__}() has no {name!r}{advice}")


@dataclass(frozen=True, kw_only=True)
class Shorthands:
    """Words of planners; None: not given.

    global_batch: samples per iteration, in the place of the batch of a replica. sequence: tokens
    per sequence of a text. tokens: to train on, in the place of a data set; an epoch is then the
    whole training. precision: of every system.
    """

    global_batch: Values | None = None
    sequence: Values | None = None
    tokens: float | str | None = None
    precision: str | None = None

    def write(
        self, axes: Mapping[str, Any], base: Path = Path()
    ) -> tuple[dict[str, Any], dict[str, object]]:
        """Return axes of a spec with the words' values, and the settings that these need.

        axes: model, system, and dataset and batch, which may be None and are then left out.
        InputError: a batch or tokens are given twice, or a text to a network that reads none.
        """
        models = look_up("model", tuple(list_labels(axes["model"])), base, join_keys)
        datasets, settings = self._write_datasets(axes.get("dataset"), models), dict[str, object]()
        written = {**axes, "system": self._write_systems(axes["system"]), "dataset": datasets}
        if self.global_batch is not None:
            if axes.get("batch") is not None:
                advice = "batch is that of a replica, global_batch that of all: give one"
                raise InputError("the batch is given twice", where="global_batch", advice=advice)
            list_counts("global_batch", self.global_batch)  # no mistake is blamed on the batch
            written["batch"] = self.global_batch
            settings["scaling"] = "strong"
        if self.tokens is not None:  # to train on all of them is one epoch
            facts = {"title": "One epoch", "target": "all tokens", "epochs_min": 1.0, "error": 0.0}
            settings["convergence"] = [
                {**facts, "name": data["name"], "model": model.name, "dataset": data["name"]}
                for model, data in product(models, datasets or ())
            ]
        return {name: value for name, value in written.items() if value is not None}, settings

    def _write_systems(self, system: Values | None) -> list[Any]:
        labels = list_labels(expect_system(system))
        if self.precision is None:
            return labels
        if self.precision not in PRECISIONS:
            raise InputError.unknown("precision", self.precision, PRECISIONS, where="precision")
        return [_add_setting(label, "precision", self.precision) for label in labels]

    def _write_datasets(
        self, dataset: Values | None, models: tuple[Architecture, ...]
    ) -> list[Any] | None:
        """Return the data sets; None: none is given, and not all networks read text.

        Without one, a network that reads text takes the Pile, in sequences no longer than it can.
        """
        length = None if self.sequence is None else list_counts("sequence", self.sequence)
        longest = [find_longest(model) for model in models]
        if None in longest and (self.tokens is not None or (length and dataset is None)):
            raise InputError(
                f"{models[longest.index(None)].name} reads no text of any length",
                where="tokens" if length is None else "sequence",
                advice="leave it out" + ("" if dataset else ", and name a data set"),
            )
        if dataset is not None:
            if self.tokens is not None:
                advice = "a data set has its own: leave out one of the two"
                raise InputError("the tokens are given twice", where="tokens", advice=advice)
            labels = list_labels(dataset)
            named = [_add_setting(label, "length", n) for label in labels for n in length or ()]
            return named or labels
        if None in longest:
            return None
        lengths = length or [int(min(LENGTH, *(most for most in longest if most)))]
        if self.tokens is None:
            return [f"{TEXT}:length={n}" for n in lengths]
        tokens = parse_quantity(self.tokens, "amount", "tokens")
        batch = max(lengths) * min(list_counts("global_batch", self.global_batch or 1))
        if tokens < batch:
            advice = f"did you mean {tokens:g}T?" if 1 <= tokens < 1000 else "such as 15T"
            what = f"{tokens:,.0f} tokens are fewer than a global batch of {batch:,}"
            raise InputError(what, where="tokens", advice=advice)
        text = {"title": "Text", "source": "--tokens", "tokens": int(tokens)}
        # Lengths are part of the name, as of other texts.
        prefix = next((prefix for prefix in "TBM" if tokens >= AMOUNTS[prefix]), "")
        name = f"{tokens / AMOUNTS.get(prefix, 1):.4g}{prefix}-tokens"
        return [{**text, "name": f"{name}:length={n}", "length": n} for n in lengths]


def read_tokens(dataset: str) -> str:
    """Return the tokens in the name of a text that states them, such as 2T; empty of others."""
    match = re.match(r"([\d.e+]+[TBM]?)-tokens(:|$)", dataset)
    return match[1] if match else ""


def reads_text(model: Values, base: Path) -> bool:
    """True if all of these networks read text by blocks of attention."""
    models = look_up("model", tuple(list_labels(model)), base, join_keys)
    return all(find_longest(one) is not None for one in models)


def list_labels(given: Values) -> list[Any]:
    """List names with their settings, of a text or a list, or a single definition."""
    labels = split_labels(given) if isinstance(given, str) else given
    return [*labels] if isinstance(labels, list | tuple) else [labels]


def _add_setting(label: Any, key: str, value: object) -> Any:
    if isinstance(label, Mapping):
        return {**label, key: value}
    return f"{label}{',' if ':' in label else ':'}{key}={value}"


def split_values(given: object, where: str = "") -> object:
    """Turn `64,128`, `1..1024`, `pow2:1..1024` or `geomspace:1 GB/s..9 GB/s..20` into what a spec
    would say; pass anything but a text through. InputError, at `where`: a range without an end.
    """
    if not isinstance(given, str):
        return given
    with add_place(where):
        values = [read_item(part.strip()) for part in given.split(",")]
    return values if len(values) > 1 else values[0]


def list_counts(name: str, given: Values) -> list[int]:
    """List the whole numbers that a text stands for. InputError: it is no count."""
    try:
        axis = expand_axis(split_values(given), COUNTS[name])
    except ValueError as error:
        raise InputError(str(error), where=name) from None
    return [int(value) for value in axis.values]
