"""Divisors: the group sizes that a PE count has."""

import math
from functools import lru_cache


@lru_cache(maxsize=65_536)
def divisors(count: int) -> tuple[int, ...]:
    """All numbers that divide `count`, ascending."""
    # By trial, up to the root: 2**20 of them for the largest PE count, 2**40.
    small = [n for n in range(1, math.isqrt(count) + 1) if count % n == 0]
    return (*small, *(count // n for n in reversed(small) if n * n != count))
