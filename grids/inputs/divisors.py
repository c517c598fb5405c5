"""Numbers that a search looks through: divisors of a PE count, and segments of a batch."""

import math
from functools import lru_cache

# GPipe's stages are busy S / (p2+S-1) of the time: 94 % with 1,024 for 64 stages.
MOST_SEGMENTS = 1024


@lru_cache(maxsize=65_536)
def divisors(count: int) -> tuple[int, ...]:
    """All numbers that divide `count`, ascending."""
    # By trial, up to the root: 2**20 of them for the largest PE count, 2**40.
    small = [n for n in range(1, math.isqrt(count) + 1) if count % n == 0]
    return (*small, *(count // n for n in reversed(small) if n * n != count))


def list_segments(batch: float) -> tuple[int, ...]:
    """Powers of two up to the samples of a batch, 1 at least and 1,024 at most, ascending."""
    largest = math.floor(math.log2(min(max(batch, 1), MOST_SEGMENTS)))
    return tuple(2**n for n in range(largest + 1))
