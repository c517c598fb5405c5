"""Rules of layouts: what each forbids, why in words, and what to change."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from paradl.kernels.columns import Column, find_any


class Rule(NamedTuple):
    """Mask of layouts that break a rule [layouts], why the first one does, and what to change."""

    mask: Column
    reason: str
    remedy: str


Rules = Mapping[str, Rule]


def divide(numbers: Collection[int], degree: Column, word: str, noun: str, remedy: str) -> Rule:
    """Return the rule that a degree, such as tp8, divides the numbers of a noun."""
    what = f"{join_numbers(numbers)} {noun}"
    return Rule(
        leave_rest(numbers, degree),
        f"{word} does not divide {what}",
        f"{remedy} that divides {what}",
    )


def leave_rest(numbers: Iterable[int], degree: Column) -> Column:
    """Find layouts whose degree does not divide all of the numbers."""
    return find_any(number % degree > 0 for number in numbers)


def join_numbers(numbers: Iterable[int]) -> str:
    """Write numbers for a message."""
    return " and ".join(map(str, numbers))
