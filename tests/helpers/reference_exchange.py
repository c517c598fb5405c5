"""What all exchanges of the machine oracle share: overlap, classes of sizes, halos, hosts.

Only from docs/machine.md, sections Network and Overlap; halos' items are the paper's.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from reference import TIE, Triple
from reference_parts import Layer, Machine, expected_largest

CLASSES = 2  # of size, of the messages inside a filter or channel group
LARGE = 256 * 2**20  # bytes that pass through hosts as fast as any


class Exchange(NamedTuple):
    """Seconds that PEs wait, and those behind their computing."""

    exposed: float
    hidden: float = 0.0


def expose(seconds: float, window: float) -> Exchange:
    """What is above the window, and what is hidden in it."""
    return Exchange(max(0.0, seconds - window), min(seconds, window))


def size_class(y: float, smallest: float, largest: float) -> int:
    """Of CLASSES of equal width in ln y; what lies on a border belongs to the larger one."""
    if largest == smallest:
        return 0
    place = CLASSES * math.log(y / smallest) / math.log(largest / smallest)
    return min(CLASSES - 1, math.floor(place + TIE))


# Halos.


def overlap_rows(kernel: float, stride: float) -> float:
    """Rows on either side that the next window reads, too: where the windows lie."""
    return max(0, kernel - stride) / 2


def halo_items(channels: float, extents: Triple, rows: Sequence[float], factors: Triple) -> float:
    """Those rows, times channels and the PE's other extents, of the dimensions that are split."""
    local = [extent / factor for extent, factor in zip(extents, factors, strict=True)]
    return sum(
        rows[i] * channels * math.prod(local[:i] + local[i + 1 :])
        for i in range(3)
        if factors[i] > 1
    )


def halos(layer: Layer, factors: Triple) -> tuple[float, float]:
    """Items of x_l and of dL/dy_l, of which a stride has one row where x_l has many.

    Of a transposed convolution (a stride below 1) windows lie on dL/dy_l, and x_l has the one row.
    """
    rows_x, rows_y = [], []
    for kernel, stride in zip(layer.kernel, layer.stride, strict=True):
        if stride < 1:
            rows_y.append(overlap_rows(kernel, 1 / stride))
            rows_x.append(rows_y[-1] * stride)
        else:
            rows_x.append(overlap_rows(kernel, stride))
            rows_y.append(rows_x[-1] / stride)
    return (
        halo_items(layer.channels, layer.extents_x, rows_x, factors),
        halo_items(layer.filters, layer.extents_y, rows_y, factors),
    )


# What passes through host memory where PEs of a node do not see each other's.


def beyond_large(machine: Machine, m: float) -> float:
    """Seconds that bytes beyond the first 256 MiB take, once."""
    return max(0.0, m - LARGE) * machine.host_path.beta / machine.large_message


def slow(machine: Machine, m: float) -> float:
    """slow(m): there and back."""
    return 2 * beyond_large(machine, m)


def slowest_node(machine: Machine, p: int) -> float:
    """j: the slowest node's time of what is large, of the mean."""
    return 1 + machine.host_jitter * expected_largest(max(1.0, p / machine.pes_per_node))
