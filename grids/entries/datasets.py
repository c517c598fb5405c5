"""Data sets: how many samples an epoch has, and what one looks like.

D is the number of samples; a sample is C channels by its spatial extents ([d,] h, w).
"""

from typing import Annotated

from pydantic import Field

from grids.entries.entry import Count, Entry


class Dataset(Entry):
    """A data set: D samples of one shape, each with a number of outputs to learn."""

    samples: Count
    # C and two or three extents, as networks are of two or three spatial dimensions.
    shape: Annotated[tuple[Count, ...], Field(min_length=3, max_length=4)]
    targets: Count  # the outputs of a last layer that is written `fc: targets`

    @property
    def rank(self) -> int:
        """How many spatial dimensions a sample has."""
        return len(self.shape) - 1
