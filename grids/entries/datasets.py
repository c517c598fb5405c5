"""Data sets: the number of samples of an epoch, and the shape of one.

D is the number of samples; a sample is C channels by its spatial extents ([d,] h, w). A sequence
has one extent, its length: C = 1 is the number of a word at each position, C = 2 a source's and a
target's. A text is so many tokens, cut into sequences of a length: `pile:length=8192`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator

from grids.entries.entry import Count, Entry

LENGTH = 2048  # of GPT-3's sequences: Brown et al. 2020, table 2.1
FROM_TOKENS = {"samples", "shape"}
COUNT = TypeAdapter(Count)


def _expect_extents(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape, if it has more than channels."""
    if len(shape) < 2:
        raise ValueError(
            "expected C and the length of a sequence, [C, length], or C and extents, "
            f"got {[*shape]}"
        )
    return shape


class Dataset(Entry):
    """A data set: D samples of one shape, each with a number of outputs to learn."""

    SETTINGS: ClassVar = ("length",)  # keys that `NAME:key=value` may set

    samples: Count
    # C and a length, or two or three extents, as networks are of two or three spatial dimensions.
    shape: Annotated[tuple[Count, ...], Field(max_length=4), AfterValidator(_expect_extents)]
    # The outputs of a last layer written as `fc: targets`; of tokens none: a network has a
    # vocabulary of its own.
    targets: Count | None = None
    tokens: Count | None = None
    length: Count | None = None  # tokens of a sequence

    @model_validator(mode="before")
    @classmethod
    def _cut_tokens(cls, data: Any) -> Any:
        """The number of samples and their shape, of a text that states its tokens."""
        if not isinstance(data, dict) or data.get("tokens") is None:
            return data
        for key in FROM_TOKENS.intersection(data):
            raise ValueError(f"{key}: follows from 'tokens' and 'length'; leave it out")
        data = {"length": LENGTH} | data
        tokens, length = _read_count(data["tokens"]), _read_count(data["length"])
        return data | {"samples": max(tokens // length, 1), "shape": (1, length)}

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        """The data set, if what is to learn is known."""
        if self.targets is None and self.tokens is None:
            raise ValueError("expected either 'targets' or 'tokens'")
        if self.length is not None and self.tokens is None:
            raise ValueError("length: expected a data set of tokens, such as 'pile'")
        return self

    def definition(self) -> dict[str, object]:
        """The entry as plain data; of a text the tokens and the length."""
        left_out = FROM_TOKENS if self.tokens else ()
        return {key: value for key, value in super().definition().items() if key not in left_out}

    def with_settings(self, settings: Mapping[str, str]) -> Self:
        """The text cut into sequences of another length, `length=8192`, which its name states.

        ValidationError: no length, or a data set that is no text.
        """
        other = self.from_definition(self.definition() | dict(settings))
        if other.shape == self.shape:
            return self
        return other.model_copy(update={"name": f"{self.name}:length={other.length}"})

    @property
    def rank(self) -> int:
        """The number of spatial dimensions of a sample."""
        return len(self.shape) - 1


def _read_count(value: object) -> int:
    """The whole number; 1 for what is none, which the check of its own field refuses."""
    try:
        return COUNT.validate_python(value)
    except ValidationError:
        return 1
