"""Data sets: the number of samples of an epoch, and the shape of one.

D is the number of samples; a sample is C channels by its spatial extents ([d,] h, w). A sequence
has one extent, its length: C = 1 is the number of a word at each position, C = 2 a source's and a
target's.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from grids.entries.entry import Count, Entry


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
    targets: Count  # the outputs of a last layer written as `fc: targets`

    @property
    def rank(self) -> int:
        """The number of spatial dimensions of a sample."""
        return len(self.shape) - 1
