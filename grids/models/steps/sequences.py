"""Steps of sequences: samples of positions with features.

    layers:
      - to_sequence                 # pixels of an image become positions; a view
      - class_token                 # a learned position in front
      - positions                   # adds a learned vector to each position
      - linear: 768                 # a matrix for the features of each position
      - gated: {hidden: 14336, bias: false}  # two, one times the other's activation, and one back
      - layernorm                   # and the other element-wise words
      - first_token                 # the first position alone, for classifiers; a view

A data set of sequences has the shape [C, length]: C features per position, such as the one number
of a word. Steps that read several positions: attention.py, lstm.py; look-up of words:
vocabularies.py.
"""

from dataclasses import replace
from typing import ClassVar, Literal

from paradl.grids.entries.entry import Count
from paradl.grids.models.steps.settings import (
    BuildingSettings,
    LayerSettings,
    Site,
    count_outputs,
    expect_sequence,
    make_sequence,
    project,
)
from paradl.grids.models.tensors import NO_ROLE, Counts, LayerOutput, Passage, Role, Shape
from paradl.grids.reading.errors import ShapeError


class LinearSettings(LayerSettings):
    """A matrix for the features of each position, the same for all of them.

    divided: by columns or rows, for tensor parallelism of two linear layers around an activation.
    """

    bare: ClassVar[str] = "features"

    features: Count | Literal["targets"]
    bias: bool = True
    divided: Literal["columns", "rows"] | None = None

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        positions, read = expect_sequence(layer, x)
        features = count_outputs(layer, self.features, targets)
        role = NO_ROLE
        if self.divided:  # by the features between two matrices, on which both agree
            role = Role(self.divided, "ffn", features if self.divided == "columns" else read, "mlp")
        return Passage(x, make_sequence(positions, features), bias=self.bias, role=role)


class ClassToken(LayerSettings):
    """An additional first position: a learned vector, the same for every sample."""

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        positions, features = expect_sequence(layer, x)
        return Passage(x, make_sequence(positions + 1, features), counts=Counts(weights=features))


class Positions(LayerSettings):
    """Addition of a learned vector to each position; length: the number of vectors, if larger."""

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
    """The pixels of an image as positions, row by row. A view: no layer."""

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        image = x.tensor
        return LayerOutput(make_sequence(image.items // image.channels, image.channels), x.maker)


class FirstToken(BuildingSettings):
    """The first position alone. A view: no layer."""

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        _, features = expect_sequence(name, x.tensor)
        return LayerOutput(make_sequence(1, features), x.maker)


class Gated(BuildingSettings):
    """down(act(gate(x)) up(x)), with `hidden` features between: two matrices side by side.

    Shazeer 2020 (GLU variants improve transformer, arXiv 2002.05202). Activation and product are
    one kernel, as in Megatron and most stacks, so only its inputs are kept.
    """

    bare: ClassVar[str] = "hidden"

    hidden: Count
    bias: bool = True

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        _, features = expect_sequence(name, x.tensor)
        columns = Role("columns", "ffn", self.hidden, "mlp")
        gate = project(site, f"{name}.gate", x, self.hidden, columns, bias=self.bias)
        up = project(site, f"{name}.up", x, self.hidden, columns, bias=self.bias)
        passage = Passage(up.tensor, up.tensor, inputs=2)
        product = site.add(f"{name}.product", "gated_product", passage, gate, up)
        rows = replace(columns, divided="rows")
        return project(site, f"{name}.down", product, features, rows, bias=self.bias)
