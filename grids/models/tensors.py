"""What flows between layers, and what sliding a window over it gives.

A window of K items with stride S and P items of padding in all turns an extent X into
floor((X + P - K) / S) + 1.
"""

import math
from dataclasses import dataclass

from grids.models.steps import Conv, Pool
from grids.reading.errors import InputError, ShapeError


@dataclass(frozen=True)
class Tensor:
    """A sample on its way: C channels by the extents ([d,] h, w)."""

    channels: int
    extents: tuple[int, ...]

    @property
    def items(self) -> int:
        return self.channels * math.prod(self.extents)

    def flat(self) -> "Tensor":
        return Tensor(self.items, tuple(1 for _ in self.extents))

    def __str__(self) -> str:
        return _times((self.channels, *self.extents))


def slide(
    name: str, window: Conv | Pool, stride: tuple[int, ...], x: Tensor, ceil: bool = False
) -> tuple[int, ...]:
    """The extents that a sliding window gives."""
    kernels = sizes(name, "kernel", window.kernel, x)
    strides = sizes(name, "stride", stride, x)
    if window.padding == "same":
        paddings = tuple(kernel - 1 for kernel in kernels)
    else:
        paddings = tuple(2 * each for each in sizes(name, "padding", window.padding, x))
    extents = tuple(
        _windows(*each, ceil) for each in zip(x.extents, kernels, strides, paddings, strict=True)
    )
    if min(extents) < 1:
        raise ShapeError(f"{name}: a window of {_times(kernels)} does not fit an input of {x}")
    return extents


def _windows(extent: int, kernel: int, stride: int, padding: int, ceil: bool) -> int:
    room = extent + padding - kernel
    if not ceil or room < 0:
        return room // stride + 1
    windows = math.ceil(room / stride) + 1
    # A window that would begin behind the input and its left padding has nothing to see.
    return windows - 1 if (windows - 1) * stride >= extent + padding // 2 else windows


def sizes(name: str, setting: str, given: tuple[int, ...], x: Tensor) -> tuple[int, ...]:
    """A size a dimension; one alone counts for all of them."""
    rank = len(x.extents)
    if len(given) not in (1, rank):
        raise InputError(
            f"expected 1 or {rank} numbers as {setting}, got {len(given)}",
            where=f"layer {name}",
            advice="write one for all dimensions, or one for each",
        )
    return given * rank if len(given) == 1 else given


def _times(sizes: tuple[int, ...]) -> str:
    return "x".join(str(each) for each in sizes)
