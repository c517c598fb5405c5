"""Tensors between layers, their way through a layer, and the extents that a window makes of them.

A tensor of one extent is a sequence: as many positions, of as many features as it has channels.

A window of K items with stride S and P items of padding in all turns an extent X into
floor((X + P - K) / S) + 1.
"""

import math
from dataclasses import dataclass
from typing import Literal

from grids.models.kinds import Sizes
from grids.reading.errors import InputError, ShapeError


@dataclass(frozen=True)
class Shape:
    """A sample on its way: C channels by the extents ([d,] h, w)."""

    channels: int
    extents: tuple[int, ...]

    @property
    def items(self) -> int:
        return self.channels * math.prod(self.extents)

    @property
    def sizes(self) -> Sizes:
        """C x extents."""
        return (self.channels, *self.extents)

    @property
    def flat(self) -> "Shape":
        """The same items, a channel each."""
        # Extents of 1 rather than none: a network keeps its rank behind a flatten.
        return Shape(self.items, tuple(1 for _ in self.extents))

    @property
    def is_sequence(self) -> bool:
        """True if its only extent is a length; channels are then the features of a position."""
        return len(self.extents) == 1

    @property
    def rows(self) -> Sizes:
        """The extents that a spatial group may divide: of a sequence, none.

        Attention reads all positions, and a recurrent cell one after the other.
        """
        return () if self.is_sequence else self.extents

    def __str__(self) -> str:
        if self.is_sequence:
            return f"{self.extents[0]} positions of {self.channels}"
        return format_sizes(self.sizes)


@dataclass(frozen=True)
class Role:
    """A layer's role in a transformer: how tensor parallelism divides it, what recomputes it.

    divided: its matrix by columns or rows, in a pair as Megatron-LM has it (Shoeybi et al. 2019);
    of: what a PE gets whole ones of; parts: how many of these there are. module: Megatron's name of
    what computes its output again. kept: the part of its output that later layers read as it is.
    experts: networks that it is a layer of.
    """

    divided: Literal["", "columns", "rows"] = ""
    of: Literal["", "heads", "kv_heads", "ffn", "vocabulary"] = ""
    parts: int = 1
    module: str = ""
    kept: float = 1.0
    experts: int = 0


NO_ROLE = Role()


@dataclass(frozen=True)
class Passage:
    """A sample's way through one layer: what comes in, what goes out, what slides over it.

    stride: rows of x between one row of y and the next; below 1 where a transposed convolution
    makes several rows of one. inputs: number of tensors of x's sizes that come in together. bias:
    whether the layer adds biases, if its kind has any. span: rows from the first to the last item
    of a dilated kernel; None: its extent. groups: number of groups that channels and filters fall
    into. counts: those that do not follow from the rules of its kind. role: in a transformer.
    """

    x: Shape
    y: Shape
    kernel: Sizes = ()
    stride: tuple[float, ...] = ()
    inputs: int = 1
    bias: bool = True
    span: Sizes | None = None
    groups: int = 1
    counts: "Counts | None" = None
    role: Role = NO_ROLE


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts that a layer sets itself; None: those of its kind, from channels, filters and kernel.

    inputs, flops: a sample. width: channels and filters of its matrix, where its tensors have
    others. besides: items that come in besides x. steps: products that wait for each other, each
    with a start-up. reads: how often its weights cross the memory, relative to once in each of
    three passes (forward, and two gradients). looked_up, drawn: weights in the rows of a table that
    a sample looks up, and in those drawn once a pass, where gradients have no other rows; 0:
    gradients are whole.
    """

    inputs: float | None = None
    weights: float | None = None
    biases: float | None = None
    flops: float | None = None
    width: tuple[int, int] | None = None
    besides: int = 0
    steps: int = 1
    reads: float = 1.0
    looked_up: int = 0
    drawn: int = 0


@dataclass(frozen=True)
class LayerOutput:
    """A tensor between layers, and the position of the layer that made it."""

    tensor: Shape
    maker: int


def slide(
    name: str,
    x: Shape,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes | Literal["same"],
    ceil: bool = False,
) -> Sizes:
    """The extents that a kernel sliding over `x` gives; ShapeError where it does not fit."""
    strides = size_dimensions(name, "stride", stride, x)
    if padding == "same":
        # Both sides together: an even kernel has one row more on one side.
        paddings = tuple(size - 1 for size in kernel)
    else:
        paddings = tuple(2 * size for size in size_dimensions(name, "padding", padding, x))
    extents = tuple(
        _count_windows(*dimension, ceil)
        for dimension in zip(x.extents, kernel, strides, paddings, strict=True)
    )
    if min(extents) < 1:
        raise ShapeError(f"{name}: a window of {format_sizes(kernel)} does not fit an input of {x}")
    return extents


def spread(name: str, x: Shape, span: Sizes, stride: Sizes, padding: Sizes, more: Sizes) -> Sizes:
    """The extents that a transposed convolution gives; ShapeError where nothing is left.

    The inverse of `slide`: the smallest extents of which it makes x, and `more` rows on one side.
    """
    cut, added = (
        size_dimensions(name, what, sizes, x)
        for what, sizes in (("padding", padding), ("output_padding", more))
    )
    extents = tuple(
        (n - 1) * s + k - 2 * p + a
        for n, s, k, p, a in zip(x.extents, stride, span, cut, added, strict=True)
    )
    if any(a >= max(s, k) for a, s, k in zip(added, stride, span, strict=True)):
        raise InputError(
            f"output_padding: expected less than the stride, got {format_sizes(added)}",
            where=f"layer {name}",
        )
    if min(extents) < 1:
        raise ShapeError(
            f"{name}: nothing is left of an input of {x} behind a padding of {padding}"
        )
    return extents


def _count_windows(extent: int, kernel: int, stride: int, padding: int, ceil: bool) -> int:
    """Windows along one dimension; with `ceil`, the last may hang over the edge."""
    room = extent + padding - kernel
    # Negative room rounds down to no window, and `slide` refuses it.
    if not ceil or room < 0:
        return room // stride + 1
    windows = math.ceil(room / stride) + 1
    # A window that would begin behind the input and its left padding is dropped.
    return windows - 1 if (windows - 1) * stride >= extent + padding // 2 else windows


def size_dimensions(name: str, setting: str, given: Sizes, x: Shape) -> Sizes:
    """A size for each dimension of `x`; one alone counts for all of them."""
    rank = len(x.extents)
    if len(given) not in (1, rank):
        raise InputError(
            f"expected 1 or {rank} numbers as {setting}, got {len(given)}",
            where=f"layer {name}",
            advice="write one for all dimensions, or one for each",
        )
    return given * rank if len(given) == 1 else given


def format_sizes(sizes: Sizes) -> str:
    """Sizes as ParaDL's files write them: (3, 226, 226) as 3x226x226."""
    return "x".join(str(size) for size in sizes)
