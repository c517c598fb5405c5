"""Segments: the numbers of them that `segments=best` may cut a batch into."""

import math

from grids.entries.strategies import Strategy

# GPipe's stages are busy S / (q+S-1) of the time: 94 % with 1,024 for q = 64.
MOST = 1024


def list_segments(strategy: Strategy, batch: float) -> tuple[int, ...]:
    """Powers of two up to the samples of a batch, 1 at least, and as many as are known at most."""
    most = min(max(batch, 1), MOST, strategy.most_segments)
    largest = math.floor(math.log2(most))
    return tuple(2**n for n in range(largest + 1))
