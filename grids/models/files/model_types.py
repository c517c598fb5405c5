"""Types of Hugging Face's config.json, as grids/catalogue/model_types.yaml describes them."""

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic import Field

from paradl.grids.entries.entry import Record
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.models.files.template import MOST_TIMES
from paradl.grids.reading.yamlfile import load

# Names of the number of experts: that of a type, and of others and other versions of Transformers.
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")

# Activations of Transformers whose backward pass reads their input. With a product in one kernel
# any other costs as much: its inputs are what is kept.
SMOOTH = (
    *("silu", "swish", "mish", "hardswish", "quick_gelu", "gelu", "gelu_new", "gelu_fast"),
    *("gelu_10", "gelu_accurate", "gelu_python", "gelu_python_tanh", "gelu_pytorch_tanh"),
)
GATES = (*SMOOTH, "relu", "relu2", "relu6", "leaky_relu", "sigmoid", "tanh")
WORDS = {"smooth": SMOOTH, "gates": GATES, "t5": ("relu", *(f"gated-{name}" for name in GATES))}


def either(*values: object) -> object:
    """The first value that is not null."""
    return next((value for value in values if value is not None), None)


def every(number: int | str, other: str, kind: str, place: int | None = None) -> list[str]:
    """As many kinds as `number` says, of which the last one, or the one in `place`, is `kind`."""
    turns = min(len(number) if isinstance(number, str) else number, MOST_TIMES)
    last = turns - 1 if place is None else place
    return [kind if turn == last else other for turn in range(turns)]


def at(turns: list[str], blocks: int, places: list[object], kind: str) -> list[str]:
    """The kinds of blocks, in turn, with `kind` in some places."""
    return [
        kind if block in places else turns[block % len(turns)]
        for block in range(min(blocks, MOST_TIMES))
    ]


def between(
    first: int, last: int | None, blocks: int, other: str, kind: str, step: int = 1
) -> list[str]:
    """`kind` for every step-th block from the first to the last, which counts; null, -1: all."""
    last = blocks if last in (None, -1) else last
    return [
        kind if first <= n <= last and (n + 1) % step == 0 else other
        for n in range(min(blocks, MOST_TIMES))
    ]


def rounded(size: int, unit: int) -> int:
    """The multiple of the unit that is at least the size."""
    return math.ceil(size / unit) * unit


PATTERNS: Mapping[str, Callable[..., object]] = {
    function.__name__: function for function in (either, every, at, between, rounded)
}


class ModelType(Record):
    """A row of the types: its keys are described there."""

    family: str
    rank: int = 1
    customary: str = "pile"
    names: dict[str, str | list[str]] = Field(default_factory=dict)
    sizes: dict[str, int | None] = Field(default_factory=dict)
    keys: dict[str, Any] = Field(default_factory=dict)
    only: dict[str, str | list[Any]] = Field(default_factory=dict)
    parts: list[str] = Field(default_factory=list)
    window: str | None = None
    layers: str | list[str] = Field(default_factory=list)
    kinds: dict[str, tuple[str, str | None]] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    reserved: int = 0
    constants: dict[str, float] = Field(default_factory=dict)

    def list_names(self, key: str) -> list[str]:
        """The keys that files may have, that of the type first."""
        own = self.names.get(key, key)
        others = EXPERTS if key in EXPERTS else ()
        return [*([own] if isinstance(own, str) else own), key, *others]

    def find_key(self, setting: str) -> str:
        """The first key that a setting of the family follows from, as files have it."""
        known = {**self.sizes, **self.keys}
        words = re.findall(r"\w+", json.dumps(self.settings.get(setting)))
        return self.list_names(next((word for word in words if word in known), setting))[0]


@cache
def list_types() -> Mapping[str, ModelType]:
    """All types by `model_type`."""
    rows: dict[str, Any] = dict(load(CATALOGUE / "model_types.yaml").data)
    types: dict[str, ModelType] = {}
    for name, row in rows.items():
        entries = {key: value for key, value in row.items() if key not in ("like", "also")}
        if "like" in row:
            base = types[row["like"]].model_dump()
            entries = base | {
                key: {**base[key], **value} if isinstance(value, dict) else value
                for key, value in entries.items()
            }
        form = ModelType.model_validate(entries)
        types |= dict.fromkeys((name, *row.get("also", ())), form)
    # Of those that begin with a mark, others are made.
    return {name: form for name, form in types.items() if not name.startswith("_")}
