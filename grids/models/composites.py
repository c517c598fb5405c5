"""Steps that build several layers, or layers that read several tensors."""

from abc import abstractmethod
from typing import Protocol

from grids.models.settings import StepSettings
from grids.models.tensors import LayerOutput, Passage, Shape
from grids.reading.errors import InputError


class Site(Protocol):
    """The part of the network built so far. `targets`: outputs to learn; None: tokens."""

    @property
    def targets(self) -> int | None: ...

    def add(self, name: str, kind: str, passage: Passage, *inputs: LayerOutput) -> LayerOutput:
        """Add a layer of a kind that reads `inputs`, and return its output."""
        ...

    def look_up(self, name: str, reference: str) -> LayerOutput:
        """Return the output of an earlier step that `name` refers to; InputError if none has it."""
        ...

    def find_table(self, x: LayerOutput) -> tuple[str | None, int]:
        """Return the kind of the layer that made a tensor, and its weights; None, 0: sample."""
        ...


class BuildingSettings(StepSettings):
    """Settings of a step that makes several layers, or layers that read several tensors."""

    @abstractmethod
    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        """Build the layers and return their output; InputError, ShapeError: they do not fit."""


def expect_sequence(name: str, x: Shape) -> tuple[int, int]:
    """Return positions and features of a sequence; InputError for an image."""
    if not x.is_sequence:
        raise InputError(
            f"expected a sequence, got an image of {x}",
            where=f"layer {name}",
            advice="write 'to_sequence' before it, which turns pixels into positions",
        )
    return x.extents[0], x.channels


def make_sequence(positions: int, features: int) -> Shape:
    """Return the tensor of a sequence."""
    return Shape(features, (positions,))
