"""Steps that build several layers, or layers that read several tensors."""

from abc import abstractmethod
from typing import Protocol

from grids.models.settings import StepSettings
from grids.models.tensors import LayerOutput, Passage, Shape
from grids.reading.errors import InputError


class Site(Protocol):
    """The network as far as it is built. `targets`: outputs to learn; None: of tokens."""

    @property
    def targets(self) -> int | None: ...

    def add(self, name: str, kind: str, passage: Passage, *inputs: LayerOutput) -> LayerOutput:
        """The output of a new layer of a kind that reads `inputs`."""
        ...

    def look_up(self, name: str, reference: str) -> LayerOutput:
        """The output of an earlier step, which `name` refers to; InputError where there is none."""
        ...

    def find_table(self, x: LayerOutput) -> tuple[str | None, int]:
        """The kind of the layer that made a tensor, and its weights; None, 0: the sample."""
        ...


class BuildingSettings(StepSettings):
    """The settings of a step of several layers, or of layers that read several tensors."""

    @abstractmethod
    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        """Build the layers and return their output; InputError, ShapeError: they do not fit."""


def expect_sequence(name: str, x: Shape) -> tuple[int, int]:
    """Positions and features of a sequence; InputError for an image."""
    if not x.is_sequence:
        raise InputError(
            f"expected a sequence, got an image of {x}",
            where=f"layer {name}",
            advice="write 'to_sequence' before it, which makes each place of an image a position",
        )
    return x.extents[0], x.channels


def make_sequence(positions: int, features: int) -> Shape:
    """The tensor of a sequence."""
    return Shape(features, (positions,))
