"""Rules of layouts: what each forbids, why in words, and what to change."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from paradl.kernels.layouts.columns import Column, find_any


class Rule(NamedTuple):
    """A rule that forbids layouts, whatever their memory.

    mask: layouts that break it [layouts]. reason: why the first one does, in words. remedy: what
    would let layouts divide.
    """

    mask: Column
    reason: str
    remedy: str


Rules = Mapping[str, Rule]


def leave_rest(numbers: Iterable[int], degree: Column) -> Column:
    """Find layouts whose degree does not divide all of the numbers."""
    return find_any(number % degree > 0 for number in numbers)


def join_numbers(numbers: Iterable[int]) -> str:
    """Write numbers for a message."""
    return " and ".join(map(str, numbers))
