"""Segments: how many of them a pipeline that looks for the best may cut a batch into."""

import math

# GPipe's stages are busy S / (p2+S-1) of the time: 94 % with 1,024 for 64 stages.
MOST = 1024


def list_segments(batch: float) -> tuple[int, ...]:
    """Powers of two up to the samples of a batch, 1 at least and 1,024 at most, ascending."""
    largest = math.floor(math.log2(min(max(batch, 1), MOST)))
    return tuple(2**n for n in range(largest + 1))
