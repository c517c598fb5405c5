"""Blocks of a network as layouts divide them, and what parallelisms say: rules, marks, values."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from paradl.kernels.columns import Column, find_any
from paradl.kernels.machine.rates import Rates
from paradl.kernels.parallelism.transfers import Transfers
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Transformer

# By name: the layouts that each applies to [layouts].
Marks = Mapping[str, Callable[[Transformer, Layouts, Training, int], Column]]
Repeats = Mapping[str, Callable[[Layouts], Column]]
Values = Mapping[str, Callable[[Transformer, int, int], Iterable[int]]]
Exchanged = Mapping[str, Column]  # seconds by term


@dataclass(frozen=True)
class DividedBlocks:
    """Blocks of a network, the layouts that divide them, and what machines reach."""

    net: Transformer
    layouts: Layouts
    training: Training
    rates: Rates
    transfers: Transfers

    @cached_property
    def activations(self) -> Column:
        """Bytes between two blocks per micro-batch: u h items."""
        tokens = self.training.count_tokens(self.layouts)
        return tokens * self.net.hidden * self.training.recipe.item


class Computing(NamedTuple):
    """Seconds per micro-batch of a block, forward and backward, that can hide its exchanges.

    attentions: of each; products: of all matrices; whole: all compute.
    """

    attentions: Sequence[Column]
    products: Column
    whole: Column


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
