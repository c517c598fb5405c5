"""Steps of sequences: samples of positions with features.

A data set of sequences has the shape [C, length]: C features per position, such as the one number
of a word. Steps that read several positions: attention.py; look-up of words: vocabularies.py.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from paradl.grids.entries.entry import Count, refuse_bool
from paradl.grids.models.steps.settings import (
    BuildingSettings,
    LayerSettings,
    Site,
    count_outputs,
    expect_sequence,
    make_sequence,
    multiply,
    project,
)
from paradl.grids.models.tensors import NO_ROLE, LayerOutput, Passage, Role, Shape
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
        return Passage(x, make_sequence(positions + 1, features), weights=features)


class LayerNorm(LayerSettings):
    """Features of each position less their mean, over their deviation; then scaled and shifted."""

    weights: bool = True
    bias: bool = True

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        weights = None if self.weights else 0
        return Passage(x, x, weights=weights, bias=self.bias and self.weights)


class ScaleSettings(LayerSettings):
    """Multiplication by constants, or by a few `weights` that are learned."""

    weights: Annotated[int, Field(ge=0), BeforeValidator(refuse_bool)] = 0

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        return Passage(x, x, weights=self.weights)


class Positions(LayerSettings):
    """Addition of a learned vector to each position; length: the number of vectors, if larger.

    shared: of vectors that positions of a kind have in common, such as those of a segment.
    """

    length: Count | None = None
    shared: bool = False

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        positions, features = expect_sequence(layer, x)
        length = self.length or positions
        if positions > length and not self.shared:
            raise ShapeError(
                f"{layer}: has vectors for {length:,} positions, got a sequence of {positions:,}"
            )
        return Passage(x, x, weights=length * features)


class ToSequence(BuildingSettings):
    """The pixels of an image as positions, row by row. A view: no layer."""

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        image = x.tensor
        return LayerOutput(make_sequence(image.items // image.channels, image.channels), x.maker)


class FirstToken(BuildingSettings):
    """The first position alone, or the first `count`. A view: no layer."""

    count: Count = 1

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        positions, features = expect_sequence(name, x.tensor)
        return LayerOutput(make_sequence(min(self.count, positions), features), x.maker)


class Gated(BuildingSettings):
    """down(act(gate(x)) up(x)), with `hidden` features between: two matrices side by side.

    Shazeer 2020 (GLU variants improve transformer, arXiv 2002.05202). Activation and product are
    one kernel, as in Megatron and most stacks, so only its inputs are kept. output_bias: of down.
    """

    bare: ClassVar[str] = "hidden"

    hidden: Count
    bias: bool = True
    output_bias: bool | None = None

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        _, features = expect_sequence(name, x.tensor)
        columns = Role("columns", "ffn", self.hidden, "mlp")
        gate = project(site, f"{name}.gate", x, self.hidden, columns, bias=self.bias)
        up = project(site, f"{name}.up", x, self.hidden, columns, bias=self.bias)
        product = multiply(site, f"{name}.product", gate, up)
        rows = replace(columns, divided="rows")
        bias = self.bias if self.output_bias is None else self.output_bias
        return project(site, f"{name}.down", product, features, rows, bias=bias)


GATES = 4


class Lstm(BuildingSettings):
    """Recurrent layers, in which each position waits for the previous one.

    biases: per gate; two in cuDNN's frameworks, one in others.

    An LSTM (Hochreiter and Schmidhuber 1997; with projection, Sak et al. 2014) of h units at T
    positions is three rows of the layer table, four with a projection to r features (else r = h):
    a matrix of C x 4h for all positions at once; one of r x 4h, T times in sequence; gates from 4h
    sums to h units, T times; and a matrix of h x r, T times.

    What runs T times has T start-ups, forward and backward. Its weights are read T times forward
    and T times for the gradients of the input; the gradients of the weights are one product over
    all positions.
    """

    bare: ClassVar[str] = "hidden"

    hidden: Count
    projection: Count | None = None
    layers: Annotated[Count, Field(le=1000)] = 1
    bidirectional: bool = False
    biases: Annotated[int, Field(ge=0, le=2), BeforeValidator(refuse_bool)] = 2

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        expect_sequence(name, x.tensor)
        for number in range(1, self.layers + 1):
            layer = name if self.layers == 1 else f"{name}.{number}"
            if not self.bidirectional:
                x = self._build_direction(layer, x, site)
                continue
            ways = [self._build_direction(f"{layer}.{w}", x, site) for w in ("forward", "backward")]
            y = make_sequence(x.tensor.extents[0], 2 * ways[0].tensor.channels)
            x = site.add(f"{layer}.concat", "concat", Passage(y, y), *ways)
        return x

    def _build_direction(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        length, sums, units = x.tensor.extents[0], GATES * self.hidden, self.hidden
        fed_back = self.projection or units
        gates = make_sequence(length, sums)
        passage = Passage(x.tensor, gates, bias=self.biases > 0)
        y = site.add(f"{name}.input", "linear", passage, x)
        biases = sums if self.biases == 2 else 0
        # Its products are added to the sums, so it makes no tensor of another size.
        passage = _step_through(gates, gates, (fed_back, sums), biases)
        y = site.add(f"{name}.recurrent", "recurrent", passage, y)
        cell = make_sequence(length, units)
        y = site.add(f"{name}.gates", "gates", Passage(gates, cell, steps=length), y)
        if self.projection is None:
            return y
        passage = _step_through(cell, make_sequence(length, fed_back), (units, fed_back), biases=0)
        return site.add(f"{name}.projection", "recurrent", passage, y)


def _step_through(x: Shape, y: Shape, width: tuple[int, int], biases: int) -> Passage:
    """Return the passage through a matrix that multiplies one position after another."""
    (length,), weights = x.extents, width[0] * width[1]
    return Passage(
        x,
        y,
        weights=weights,
        biases=biases,
        flops=2 * weights * length,
        width=width,
        steps=length,
        # T times forward, T times for gradients of inputs, once for those of weights.
        reads=(2 * length + 1) / 3,
    )
