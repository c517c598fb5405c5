"""Tensors between layers, their passage through a layer, and the extents that windows produce.

A tensor with one extent is a sequence: positions, with channels as features.

A window of K items with stride S and P items of total padding turns an extent X into
floor((X + P - K) / S) + 1; a transposed convolution X into (X - 1) S + K - P, plus
`output_padding` rows.
"""

import math
from dataclasses import dataclass
from typing import Literal

from paradl.grids.models.kinds import Sizes
from paradl.grids.reading.errors import InputError, ShapeError


@dataclass(frozen=True)
class Shape:
    """The shape of a tensor: C channels by the extents ([d,] h, w)."""

    channels: int
    extents: tuple[int, ...]

    @property
    def items(self) -> int:
        """Number of items."""
        return self.channels * math.prod(self.extents)

    @property
    def sizes(self) -> Sizes:
        """C and the extents."""
        return (self.channels, *self.extents)

    @property
    def flat(self) -> "Shape":
        """The same items, as channels."""
        # Extents of 1 rather than none: the rank stays the same after a flatten.
        return Shape(self.items, tuple(1 for _ in self.extents))

    @property
    def is_sequence(self) -> bool:
        """True if its only extent is a length, and channels are features of a position."""
        return len(self.extents) == 1

    @property
    def rows(self) -> Sizes:
        """Extents that a spatial group may divide; none for a sequence.

        Attention reads all positions, and a recurrent cell reads them in sequence.
        """
        return () if self.is_sequence else self.extents

    def __str__(self) -> str:
        if self.is_sequence:
            return f"{self.extents[0]} positions of {self.channels}"
        return format_sizes(self.sizes)


@dataclass(frozen=True)
class Reading:
    """How the queries of an attention read keys.

    kv_heads: heads of keys and values. causal: a query reads its own and earlier positions. window:
    most positions that a query reads; 0: all.
    """

    heads: int
    kv_heads: int
    causal: bool = False
    window: int = 0

    def count_keys(self, positions: int) -> int:
        """Count the positions that a query reads of a sequence, before causality."""
        return min(positions, self.window or positions)


@dataclass(frozen=True)
class Role:
    """A layer's role in a transformer: how tensor parallelism divides it, what recomputes it.

    divided: matrix split by columns or rows, in pairs as in Megatron-LM (Shoeybi et al. 2019); of:
    the units of which a PE gets whole ones; parts: number of these units. module: Megatron's name
    of the module whose recomputation covers its output. kept: share of its output that later layers
    read unchanged. experts: number of expert networks, if it is a layer of one. reading: of an
    attention's scores. rank: of an adapter's matrix.
    """

    divided: Literal["", "columns", "rows"] = ""
    of: Literal["", "heads", "kv_heads", "ffn", "vocabulary"] = ""
    parts: int = 1
    module: str = ""
    kept: float = 1.0
    experts: int = 0
    reading: Reading | None = None
    rank: int = 0


NO_ROLE = Role()


@dataclass(frozen=True)
class Passage:
    """A sample's passage through one layer: input, output, window, role, and counts.

    stride: rows of x per row of y; below 1 for a transposed convolution. inputs: number of inputs
    of x's sizes. bias: whether the layer adds biases, if its kind has any. span: rows from the
    first to the last item of a dilated kernel; None: the kernel's. groups: groups of channels and
    filters. role: in a transformer.

    Counts that a layer sets itself; None: by its kind, from channels, filters and kernel. items (of
    all inputs), flops: per sample. width: channels and filters of its matrix, if its tensors have
    others. besides: input items in addition to x. steps: products in sequence, each with a
    start-up. reads: times that its weights are read from memory in each of three passes (forward
    and two gradients). looked_up, drawn: for row-sparse gradients, weights in the rows that a
    sample looks up, and in those drawn once per pass; 0: dense gradients.
    """

    x: Shape
    y: Shape
    kernel: Sizes = ()
    stride: tuple[float, ...] = ()
    inputs: int = 1
    bias: bool = True
    span: Sizes | None = None
    groups: int = 1
    role: Role = NO_ROLE
    items: float | None = None
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
    """Return the extents that a kernel sliding over `x` gives; ShapeError if it does not fit."""
    strides = size_dimensions(name, "stride", stride, x)
    if padding == "same":
        # Both sides together: with an even kernel, one side gets one row more.
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
    """Return the extents that a transposed convolution gives; ShapeError if nothing is left.

    This inverts `slide`: the smallest extents that it turns into x, plus `more` rows on one side.
    """
    cut = size_dimensions(name, "padding", padding, x)
    added = size_dimensions(name, "output_padding", more, x)
    extents = tuple(
        (n - 1) * s + k - 2 * p + a
        for n, s, k, p, a in zip(x.extents, stride, span, cut, added, strict=True)
    )
    if any(a >= max(s, k) for a, s, k in zip(added, stride, span, strict=True)):
        what = f"output_padding: expected less than the stride, got {format_sizes(added)}"
        raise InputError(what, where=f"layer {name}")
    if min(extents) < 1:
        raise ShapeError(f"{name}: an input of {x} with a padding of {padding} leaves nothing")
    return extents


def _count_windows(extent: int, kernel: int, stride: int, padding: int, ceil: bool) -> int:
    """Count windows along one dimension; with `ceil`, the last may extend over the edge."""
    room = extent + padding - kernel
    # Negative room rounds to no window, which `slide` refuses.
    if not ceil or room < 0:
        return room // stride + 1
    windows = math.ceil(room / stride) + 1
    # A window that would begin beyond the input and its left padding is dropped.
    return windows - 1 if (windows - 1) * stride >= extent + padding // 2 else windows


def size_dimensions(name: str, setting: str, given: Sizes, x: Shape) -> Sizes:
    """Return a size per dimension of `x`; a single size holds for all."""
    rank = len(x.extents)
    if len(given) not in (1, rank):
        raise InputError(
            f"expected 1 or {rank} numbers as {setting}, got {len(given)}",
            where=f"layer {name}",
            advice="write one for all dimensions, or one per dimension",
        )
    return given * rank if len(given) == 1 else given


def format_sizes(sizes: Sizes) -> str:
    """Format sizes: (3, 226, 226) as 3x226x226."""
    return "x".join(str(size) for size in sizes)
