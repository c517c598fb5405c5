"""Gated linear layers: two matrices side by side, the activation of one times the other.

    layers:
      - gated: {hidden: 14336, bias: false}     # followed by a matrix back to the input's features

Shazeer 2020 (GLU variants improve transformer, arXiv 2002.05202). Activation and product are one
kernel, as in Megatron and most stacks, so only its inputs are kept.
"""

from dataclasses import replace
from typing import ClassVar

from grids.entries.entry import Count
from grids.models.attention import project
from grids.models.settings import BuildingSettings, Site, expect_sequence
from grids.models.tensors import LayerOutput, Passage, Role


class Gated(BuildingSettings):
    """down(act(gate(x)) up(x)), with `hidden` features between."""

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
