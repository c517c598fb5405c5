"""Steps of sequences: positions of a sample, each of which has features.

    layers:
      - to_sequence                 # an image's places become positions; a view
      - class_token                 # one position more in front, which is learned
      - positions                   # a learned vector for each position is added
      - linear: 768                 # a matrix for the features of each position
      - layernorm                   # and the other element-wise words
      - first_token                 # the first position alone, as classifiers have it; a view

A data set of sequences has the shape [C, length]: C features of each position, such as the one
number of a word. What reads several positions at once: attention.py and lstm.py; what looks
words up: vocabularies.py.
"""

from typing import ClassVar, Literal

from grids.entries.entry import Count
from grids.models.composites import BuildingSettings, Site, expect_sequence, make_sequence
from grids.models.settings import LayerSettings, count_outputs
from grids.models.tensors import NO_ROLE, Counts, LayerOutput, Passage, Role, Shape
from grids.reading.errors import ShapeError


class LinearSettings(LayerSettings):
    """A matrix for the features of each position, the same for all of them.

    divided: in what way, where tensor parallelism divides two in a row, with an activation between.
    """

    bare: ClassVar[str] = "features"

    features: Count | Literal["targets"]
    bias: bool = True
    divided: Literal["columns", "rows"] | None = None

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        positions, read = expect_sequence(layer, x)
        features = count_outputs(layer, self.features, targets)
        role = NO_ROLE
        if self.divided:
            role = Role(self.divided, "ffn", features if self.divided == "columns" else read, "mlp")
        return Passage(x, make_sequence(positions, features), bias=self.bias, role=role)


class ClassToken(LayerSettings):
    """A position more, in front: the same learned vector for every sample."""

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        positions, features = expect_sequence(layer, x)
        return Passage(x, make_sequence(positions + 1, features), counts=Counts(weights=features))


class Positions(LayerSettings):
    """A learned vector for each position is added; length: the most that there are vectors for."""

    length: Count | None = None

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        positions, features = expect_sequence(layer, x)
        length = self.length or positions
        if positions > length:
            raise ShapeError(
                f"{layer}: has vectors for {length:,} positions, got a sequence of {positions:,}"
            )
        return Passage(x, x, counts=Counts(weights=length * features))


class ToSequence(BuildingSettings):
    """The places of an image as positions, row by row. A view: no layer."""

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        image = x.tensor
        return LayerOutput(make_sequence(image.items // image.channels, image.channels), x.maker)


class FirstToken(BuildingSettings):
    """The first position alone. A view: no layer."""

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        _, features = expect_sequence(name, x.tensor)
        return LayerOutput(make_sequence(1, features), x.maker)
