"""Recurrent layers, in which each position waits for the previous one.

    layers:
      - lstm: 1024
      - lstm: {hidden: 8192, projection: 1024, layers: 2, biases: 1}
      - lstm: {hidden: 1024, bidirectional: true}

An LSTM (Hochreiter and Schmidhuber 1997; with projection, Sak et al. 2014) of h units at T
positions is three rows of the layer table, four with a projection to r features (else r = h):

    input       a matrix of C x 4h for all positions at once
    recurrent   a matrix of r x 4h, T times in sequence
    gates       from 4h sums to h units, T times
    projection  a matrix of h x r, T times

What runs T times has T start-ups, forward and backward. Its weights are read T times forward and T
times for the gradients of the input; the gradients of the weights are one product over all
positions.
"""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from paradl.grids.entries.entry import Count, refuse_bool
from paradl.grids.models.steps.settings import (
    BuildingSettings,
    Site,
    expect_sequence,
    make_sequence,
)
from paradl.grids.models.tensors import Counts, LayerOutput, Passage

GATES = 4


class Lstm(BuildingSettings):
    """Long short-term memory. biases: per gate; two in cuDNN's frameworks, one in others."""

    bare: ClassVar[str] = "hidden"

    hidden: Count
    projection: Count | None = None
    layers: Annotated[Count, Field(le=1000)] = 1
    bidirectional: bool = False
    biases: Annotated[int, BeforeValidator(refuse_bool), Field(ge=0, le=2)] = 2

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        expect_sequence(name, x.tensor)
        for number in range(1, self.layers + 1):
            x = self._build_layer(name if self.layers == 1 else f"{name}.{number}", x, site)
        return x

    def _build_layer(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        """Build one direction, or both side by side."""
        if not self.bidirectional:
            return self._build_direction(name, x, site)
        ways = [self._build_direction(f"{name}.{way}", x, site) for way in ("forward", "backward")]
        y = make_sequence(x.tensor.extents[0], 2 * ways[0].tensor.channels)
        return site.add(f"{name}.concat", "concat", Passage(y, y), *ways)

    def _build_direction(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        length, sums, units = x.tensor.extents[0], GATES * self.hidden, self.hidden
        fed_back = self.projection or units
        gates = make_sequence(length, sums)
        passage = Passage(x.tensor, gates, bias=self.biases > 0)
        y = site.add(f"{name}.input", "linear", passage, x)
        biases = sums if self.biases == 2 else 0
        counts = _step_through(length, (fed_back, sums), biases)
        # Its products are added to the sums, so it makes no tensor of another size.
        y = site.add(f"{name}.recurrent", "recurrent", Passage(gates, gates, counts=counts), y)
        cell = make_sequence(length, units)
        passage = Passage(gates, cell, counts=Counts(steps=length))
        y = site.add(f"{name}.gates", "gates", passage, y)
        if self.projection is None:
            return y
        counts = _step_through(length, (units, fed_back), biases=0)
        passage = Passage(cell, make_sequence(length, fed_back), counts=counts)
        return site.add(f"{name}.projection", "recurrent", passage, y)


def _step_through(length: int, width: tuple[int, int], biases: int) -> Counts:
    """Return the counts of a matrix that multiplies one position after another."""
    weights = width[0] * width[1]
    return Counts(
        weights=weights,
        biases=biases,
        flops=2 * weights * length,
        width=width,
        steps=length,
        # T times forward, T times for gradients of inputs, once for those of weights.
        reads=(2 * length + 1) / 3,
    )
