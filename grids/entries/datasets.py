"""Data sets: the number of samples of an epoch, and the shape of one.

D is the number of samples; a sample is C channels by its spatial extents ([d,] h, w). A sequence
has one extent, its length: C = 1 is the number of a word at each position, C = 2 a source's and a
target's. A text is so many tokens, cut into sequences of a length: `pile:length=8192`.
"""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from grids.entries.entry import Count, Entry, split_settings
from grids.reading.errors import InputError, suggest_name

LENGTH = 2048  # of GPT-3's sequences: Brown et al. 2020, table 2.1


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

    samples: Count
    # C and a length, or two or three extents, as networks are of two or three spatial dimensions.
    shape: Annotated[tuple[Count, ...], Field(max_length=4), AfterValidator(_expect_extents)]
    # The outputs of a last layer written as `fc: targets`; of tokens none: a network has a
    # vocabulary of its own.
    targets: Count | None = None
    tokens: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _cut_tokens(cls, data: Any) -> Any:
        """Samples and their shape, of a text that states its tokens."""
        if not isinstance(data, dict) or not isinstance(data.get("tokens"), int | float):
            return data
        length = data.get("length", LENGTH)
        rest = {key: value for key, value in data.items() if key != "length"}
        if "samples" in data or "shape" in data or not isinstance(length, int) or length < 1:
            return rest  # what a store wrote down, or what the checks of fields refuse
        return rest | {"samples": max(int(data["tokens"]) // length, 1), "shape": (1, length)}

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        """The data set, if what is to learn is known."""
        if self.targets is None and self.tokens is None:
            raise ValueError("expected either 'targets' or 'tokens'")
        return self

    def with_settings(self, text: str, where: str) -> Self:
        """The text cut into sequences of another length, `length=8192`, which its name states.

        InputError for another setting, or for a data set that is no text.
        """
        settings = split_settings(text, where, "pile:length=8192")
        for key in settings:
            if key != "length":
                raise InputError(
                    f"unknown setting {key!r}", where=where, advice=suggest_name(key, ("length",))
                )
        if self.tokens is None:
            raise InputError(
                "length: expected a data set of tokens", where=where, advice="such as 'pile'"
            )
        length = _read_length(settings["length"], where)
        if length == self.shape[1]:
            return self
        cut = {"name": f"{self.name}:length={length}", "length": length}
        kept = self.model_dump(exclude={"samples", "shape"}, exclude_none=True)
        return self.model_validate(kept | cut)

    @property
    def rank(self) -> int:
        """The number of spatial dimensions of a sample."""
        return len(self.shape) - 1


def _read_length(text: str, where: str) -> int:
    """The tokens of a sequence; InputError: none, or more than a data set has a use for."""
    try:
        length = int(text)
    except ValueError:
        length = 0
    if not 0 < length <= 2**24:
        raise InputError(f"length: expected tokens of a sequence, got {text!r}", where=where)
    return length
