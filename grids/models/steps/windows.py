"""Steps with sliding windows: convolutions and poolings.

A window of K items with a dilation spans K' = dilation (K - 1) + 1 (grids/models/tensors.py).
"""

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Tag

from paradl.grids.models.steps.settings import (
    BY_FORM,
    WORD,
    LayerSettings,
    Number,
    Paddings,
    Sizes,
    Targets,
    count_outputs,
)
from paradl.grids.models.tensors import Passage, Shape, size_dimensions, slide, spread
from paradl.grids.reading.errors import InputError, format_count

EachChannel = Annotated[Literal["channels"], Tag(WORD)]  # one group per channel


class _ConvolutionSettings(LayerSettings):
    """Settings shared by both directions of a convolution.

    filters: their number, or one per target of the data set. A group reads C/groups channels and
    makes filters/groups of the outputs; with one group per channel (`groups: channels`) the
    convolution is depthwise.
    """

    bare: ClassVar[str] = "filters"

    filters: Annotated[Number | Targets, BY_FORM]
    kernel: Sizes
    stride: Sizes = (1,)
    dilation: Sizes = (1,)
    groups: Annotated[Number | EachChannel, BY_FORM] = 1
    bias: bool = True

    def size_window(
        self, layer: str, x: Shape, targets: int | None
    ) -> tuple[int, int, Sizes, Sizes, Sizes]:
        """Return filters, groups, and the sizes of kernel, stride and span for `x`.

        InputError: groups do not divide channels and filters.
        """
        filters = count_outputs(layer, self.filters, targets)
        kernel = size_dimensions(layer, "kernel", self.kernel, x)
        stride = size_dimensions(layer, "stride", self.stride, x)
        apart = size_dimensions(layer, "dilation", self.dilation, x)
        span = tuple(d * (k - 1) + 1 for d, k in zip(apart, kernel, strict=True))
        channels = x.channels
        groups = channels if self.groups == "channels" else self.groups
        if channels % groups or filters % groups:
            raise InputError(
                f"expected groups that divide {format_count(channels, 'channel')} in and "
                f"{format_count(filters, 'filter')}, got {groups}",
                where=f"layer {layer}",
                advice=f"their largest common divisor is {math.gcd(channels, filters)}",
            )
        return filters, groups, kernel, stride, span


class Conv(_ConvolutionSettings):
    """A convolution.

    shared: its weights are those of an earlier one, where they are counted.
    """

    padding: Paddings | Literal["same"] = (0,)
    shared: bool | None = None  # not False, which would change fingerprints of networks without it

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        filters, groups, kernel, stride, span = self.size_window(layer, x, targets)
        y = Shape(filters, slide(layer, x, span, stride, self.padding))
        passage = Passage(x, y, kernel, stride, bias=self.bias, span=span, groups=groups)
        if not self.shared:
            return passage
        flops = 2.0 * y.items * x.channels // groups * math.prod(kernel)
        return replace(passage, bias=False, weights=0, flops=flops)


class TransposedConv(_ConvolutionSettings):
    """A transposed convolution: `stride` rows of output per row of input."""

    padding: Paddings = (0,)
    # Additional rows on one side: a strided convolution maps two extents to one, this the larger.
    output_padding: Paddings = (0,)

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        filters, groups, kernel, stride, span = self.size_window(layer, x, targets)
        extents = spread(layer, x, span, stride, self.padding, self.output_padding)
        back = tuple(1 / rows for rows in stride)
        y = Shape(filters, extents)
        return Passage(x, y, kernel, back, bias=self.bias, span=span, groups=groups)


class Pool(LayerSettings):
    """A pooling: the maximum or mean of each window."""

    bare: ClassVar[str] = "kernel"

    kernel: Sizes
    stride: Sizes | None = None  # None: the kernel, so that windows do not overlap
    padding: Paddings | Literal["same"] = (0,)
    # Whether a last window may extend over the edge: the authors' VGG16 pools 113 to 57.
    ceil: bool = False

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        kernel = size_dimensions(layer, "kernel", self.kernel, x)
        stride = size_dimensions(layer, "stride", self.stride or self.kernel, x)
        extents = slide(layer, x, kernel, stride, self.padding, self.ceil)
        return Passage(x, Shape(x.channels, extents), kernel, stride)


class AdaptivePool(LayerSettings):
    """An average pooling to a given extent."""

    bare: ClassVar[str] = "extent"

    extent: Sizes

    def infer(self, layer: str, x: Shape, targets: int | None) -> Passage:
        y = Shape(x.channels, size_dimensions(layer, "extent", self.extent, x))
        # Windows of one size, rounded up. Frameworks vary the size where extents do not divide. If
        # the output is larger than the input, each item is its own window.
        kernel = tuple(math.ceil(a / b) for a, b in zip(x.extents, y.extents, strict=True))
        return Passage(x, y, kernel, stride=kernel)
