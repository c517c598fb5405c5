"""Data sets: the number of samples per epoch, and the shape of a sample.

D is the number of samples; a sample is C channels by its spatial extents ([d,] h, w). A sequence
has one extent, its length: C = 1 is the number of a word per position, C = 2 a source's and a
target's. A text is a number of tokens, cut into sequences: `pile:length=8192`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from paradl.grids.entries.entry import Count, Entry

LENGTH = 2048  # as for GPT-3 (Brown et al. 2020, table 2.1)
FROM_TOKENS = {"samples", "shape"}
COUNT = TypeAdapter(Count)
EITHER: list[JsonValue] = [{"required": ["samples", "shape"]}, {"required": ["tokens"]}]


class Dataset(Entry):
    """A data set: D samples of one shape, and the number of outputs to learn.

    samples: their number D. shape: channels and a length, or two or three extents. targets: outputs
    of a last layer `fc: targets`; none of tokens, whose vocabulary is the network's. tokens: of a
    text, in all. length: tokens per sequence. packed: tokens of a packed document, on average over
    tokens (squared lengths over lengths, summed).
    """

    model_config = ConfigDict(json_schema_extra={"required": ["name"], "anyOf": EITHER})
    SETTINGS: ClassVar = ("length", "packed")  # keys that `NAME:key=value` may set

    samples: Count
    shape: Annotated[tuple[Count, ...], Field(min_length=2, max_length=4)]
    targets: Count | None = None
    tokens: Count | None = None
    length: Count | None = None
    packed: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _cut_tokens(cls, data: Any) -> Any:
        """Derive the number and shape of samples of a text from its tokens."""
        if not isinstance(data, dict) or data.get("tokens") is None:
            return data
        for key in FROM_TOKENS.intersection(data):
            raise ValueError(f"{key}: follows from 'tokens' and 'length'; leave it out")
        data = {"length": LENGTH} | data
        tokens, length = _read_count(data["tokens"]), _read_count(data["length"])
        return data | {"samples": max(tokens // length, 1), "shape": (1, length)}

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        if self.targets is None and self.tokens is None:
            raise ValueError("expected either 'targets' or 'tokens'")
        if self.length is not None and self.tokens is None:
            raise ValueError("length: expected a data set of tokens, such as 'pile'")
        if self.packed is not None and self.packed > (self.length or 0):
            most = f"documents of at most {self.length} tokens" if self.length else "a text"
            raise ValueError(f"packed: expected {most}")
        return self

    def definition(self) -> dict[str, object]:
        """Return the entry as plain data; for a text, with tokens and length."""
        left_out = FROM_TOKENS if self.tokens else ()
        return {key: value for key, value in super().definition().items() if key not in left_out}

    def with_settings(self, settings: Mapping[str, str]) -> Self:
        """Return the text cut or packed into other sequences, which its new name states.

        ValidationError: a setting is no length, or the data set is not a text.
        """
        other = self.from_definition(self.definition() | dict(settings))
        if (other.shape, other.packed) == (self.shape, self.packed):
            return self
        name = f"{self.name.partition(':')[0]}:length={other.length}"
        packed = f",packed={other.packed}" if other.packed else ""
        return other.model_copy(update={"name": name + packed})

    @property
    def rank(self) -> int:
        """Number of spatial dimensions of a sample."""
        return len(self.shape) - 1


def _read_count(value: object) -> int:
    """Return the whole number, or 1 for anything else, which its own field then refuses."""
    try:
        return COUNT.validate_python(value)
    except ValidationError:
        return 1
