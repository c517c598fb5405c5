"""Divisors of degrees, and products of degrees."""

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from math import isqrt


@lru_cache(maxsize=65_536)
def list_divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return tuple(sorted({*small, *(number // divisor for divisor in small)}))


def find_largest_divisor(number: int, most: int) -> int:
    """The largest divisor of `number` up to `most`, both at least 1."""
    divisors = list_divisors(number)
    return divisors[bisect_right(divisors, most) - 1]


def factorise(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ordered factorisations into this many degrees."""
    if parts == 1:
        yield (number,)
        return
    for degree in list_divisors(number):
        for rest in factorise(number // degree, parts - 1):
            yield (degree, *rest)
