"""Layer given by its counts: `free: {flops: 2e9, weights: 1e6, outputs: 512}`.

For layers that have no step of their own. Since their inside is unknown, no group can split them:
except in pipelines, each PE runs all of it.
"""

from typing import Annotated

from pydantic import BeforeValidator, Field, Tag

from paradl.grids.entries.entry import Count, refuse_bool
from paradl.grids.models.steps.settings import (
    BY_FORM,
    LIST,
    LayerSettings,
    Number,
    Targets,
    count_outputs,
)
from paradl.grids.models.tensors import Counts, Passage, Shape
from paradl.grids.reading.errors import InputError

# The bound of a layer table; more is a typo.
Amount = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False), BeforeValidator(refuse_bool)]
OutputSizes = Annotated[tuple[Count, ...], Field(min_length=1, max_length=4), Tag(LIST)]


class Free(LayerSettings):
    """Forward operations per sample, weights, and items in and out per sample.

    inputs: by default all incoming items. outputs: their number, or C x extents; by default the
    input's sizes. A sequence may become an image, as some attention does between its layers.
    """

    flops: Amount
    weights: Amount = 0.0
    biases: Amount = 0.0
    inputs: Amount | None = None
    outputs: Annotated[Number | Targets | OutputSizes, BY_FORM] | None = None

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        y = self._find_output(layer, x, targets)
        inputs = float(x.items) if self.inputs is None else self.inputs
        counts = Counts(inputs=inputs, weights=self.weights, biases=self.biases, flops=self.flops)
        return Passage(x, y, counts=counts)

    def _find_output(self, layer: str, x: Shape, targets: int | None) -> Shape:
        """Return the output, of the input's rank unless a sequence becomes an image."""
        if self.outputs is None:
            return x
        if self.outputs == "targets" or isinstance(self.outputs, int):
            channels = count_outputs(layer, self.outputs, targets)
            return Shape(channels, x.flat.extents)
        is_folded = len(x.extents) == 1 and len(self.outputs) > len(x.sizes)
        if len(self.outputs) != len(x.sizes) and not is_folded:
            raise InputError(
                f"outputs: expected a number, or C and {len(x.extents)} extents, "
                f"got {len(self.outputs)} numbers",
                where=f"layer {layer}",
            )
        return Shape(self.outputs[0], self.outputs[1:])
