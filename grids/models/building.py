"""Steps that build several layers, or layers that read several tensors."""

from abc import abstractmethod
from typing import Protocol

from grids.models.settings import Settings
from grids.models.tensors import Passage, Stream, Tensor
from grids.reading.errors import InputError


class Site(Protocol):
    """The network as far as it is built. `targets`: outputs to learn; None: of tokens."""

    @property
    def targets(self) -> int | None: ...

    def add(self, name: str, kind: str, passage: Passage, *inputs: Stream) -> Stream:
        """The output of a new layer of a kind that reads `inputs`."""
        ...

    def look_up(self, name: str, reference: str) -> Stream:
        """The output of an earlier step, which `name` refers to; InputError where there is none."""
        ...

    def find_table(self, x: Stream) -> tuple[str | None, int]:
        """The kind of the layer that made a tensor, and its weights; None, 0: the sample."""
        ...


class BuildingSettings(Settings):
    """The settings of a step of several layers, or of layers that read several tensors."""

    @abstractmethod
    def build(self, name: str, x: Stream, site: Site) -> Stream:
        """Build the layers and return their output; InputError, ShapeError: they do not fit."""


def expect_sequence(name: str, x: Tensor) -> tuple[int, int]:
    """Positions and features of a sequence; InputError for an image."""
    if not x.is_sequence:
        raise InputError(
            f"expected a sequence, got an image of {x}",
            where=f"layer {name}",
            advice="write 'to_sequence' before it, which makes each place of an image a position",
        )
    return x.extents[0], x.channels


def make_sequence(positions: int, features: int) -> Tensor:
    """The tensor of a sequence."""
    return Tensor(features, (positions,))
