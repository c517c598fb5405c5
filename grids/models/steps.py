"""The steps an architecture is written in: the same from a YAML file and from Python.

A step is a word, or a mapping of one word to its settings; a bare value is the first setting:

    layers:
      - conv: {filters: 64, kernel: 7, stride: 2, padding: 3, bias: false}
      - batchnorm
      - relu
      - maxpool: {kernel: 3, stride: 2, padding: 1, ceil: false}   # or maxpool: 2
      - residual:                   # ends in one addition; no shortcut: the input itself
          body: [{conv: {filters: 64, kernel: 3, padding: same}}, relu]
          shortcut: [{conv: {filters: 64, kernel: 1}}]
      - concat:                     # branches, joined along the channels
          - [{conv: {filters: 32, kernel: 1}}]
          - [{avgpool: {kernel: [3, 1], stride: 1, padding: [1, 0]}}]
      - side: [{fc: targets}]       # a head of its own; the trunk goes on from its input
      - adaptive_avgpool: 1         # to this extent, whatever comes in
      - dropout
      - fc: {outputs: 4096, bias: true, name: fc6}
      - fc: targets                 # as many outputs as the dataset has targets

Kernel, stride and padding are a number for all dimensions, or a list in the order [d,] h, w.
Padding is what is added on each side; "same" adds kernel - 1 in all, so that the extent is
divided by the stride and rounded up. Any step takes a `name`; without one it gets its word and a
number.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from grids.entries.entry import Count, Name, Record
from grids.reading.errors import shorten


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, int) else value


A_DIMENSION_EACH = Field(min_length=1, max_length=3)
Sizes = Annotated[tuple[Count, ...], A_DIMENSION_EACH, BeforeValidator(_one_or_more)]
Paddings = Annotated[
    tuple[Annotated[int, Field(ge=0, le=2**53)], ...],
    A_DIMENSION_EACH,
    BeforeValidator(_one_or_more),
]


class Settings(Record):
    """The settings of one step. A bare value in the file is the setting called `bare`."""

    bare: ClassVar[str] = "name"

    name: Name | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_bare(cls, value: Any) -> Any:
        if value is None:
            return {}
        return value if isinstance(value, dict | cls) else {cls.bare: value}


class Conv(Settings):
    """A convolution."""

    bare: ClassVar[str] = "filters"

    filters: Count
    kernel: Sizes
    stride: Sizes = (1,)
    padding: Paddings | Literal["same"] = (0,)
    bias: bool = True


class Fc(Settings):
    """A fully connected layer, of all items that come in."""

    bare: ClassVar[str] = "outputs"

    outputs: Count | Literal["targets"]
    bias: bool = True


class Pool(Settings):
    """The largest, or the mean, of each window."""

    bare: ClassVar[str] = "kernel"

    kernel: Sizes
    stride: Sizes | None = None  # without one, windows stand side by side
    padding: Paddings | Literal["same"] = (0,)
    ceil: bool = False  # whether a last window may hang over the edge


class AdaptivePool(Settings):
    """An average pool with the windows that give a wanted extent."""

    bare: ClassVar[str] = "extent"

    extent: Sizes


class Plain(Settings):
    """A step with nothing to set."""


class Residual(Settings):
    """A body and a shortcut from the same input, added."""

    bare: ClassVar[str] = "body"

    body: "Steps"
    shortcut: "Steps" = ()


class Concat(Settings):
    """Branches from the same input, joined along the channels."""

    bare: ClassVar[str] = "branches"

    branches: Annotated[tuple["Steps", ...], Field(min_length=1)]


class Side(Settings):
    """A head beside the trunk, such as an auxiliary classifier."""

    bare: ClassVar[str] = "layers"

    layers: "Steps"


class Step(Record):
    """One word and its settings; exactly one is there."""

    conv: Conv | None = None
    fc: Fc | None = None
    maxpool: Pool | None = None
    avgpool: Pool | None = None
    adaptive_avgpool: AdaptivePool | None = None
    batchnorm: Plain | None = None
    relu: Plain | None = None
    dropout: Plain | None = None
    flatten: Plain | None = None
    residual: Residual | None = None
    concat: Concat | None = None
    side: Side | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {}}
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise ValueError(
                f"expected one word and its settings, got {len(value)}: {shorten([*value])}"
            )
        return {word: {} if settings is None else settings for word, settings in value.items()}

    @property
    def word(self) -> str:
        (word,) = self.model_fields_set
        return word

    @property
    def settings(self) -> Settings:
        settings = getattr(self, self.word)
        assert isinstance(settings, Settings)
        return settings


Steps = tuple[Step, ...]
