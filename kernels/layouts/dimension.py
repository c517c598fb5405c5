"""Base class of the dimensions of a layout: tensor, context, expert, pipeline, replicas.

A dimension says which degrees it may have and what its PEs send each other. Its words stand in
`kernels.names`, since `paradl strategies` and a spec's messages need them without numpy or JAX.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from kernels.layouts.columns import Column, find_any
from kernels.layouts.parameters import Parameters
from kernels.layouts.rates import Rates
from kernels.layouts.transfers import Transfers
from kernels.layouts.transformer import Block, Layouts, Training, Transformer

# Rules by name: the layouts that each applies to [layouts].
Rules = Mapping[str, Callable[[Transformer, Layouts, Training], Column]]
Marks = Mapping[str, Callable[[Transformer, Layouts, Training, int], Column]]
Repeats = Mapping[str, Callable[[Layouts], Column]]
Values = Mapping[str, Callable[[Transformer, int], Iterable[int]]]
Exchanged = Mapping[str, Column]  # seconds by term


@dataclass(frozen=True)
class Dimension:
    """One way in which layouts divide the training of a transformer among PEs.

    values: those of its columns that a search tries on so many PEs. repeats: layouts that are
    others again, by the column that has nothing to divide. reasons: what forbids a layout, whatever
    its memory. marks: what is allowed but odd, on nodes of so many PEs.
    """

    net: Transformer
    layouts: Layouts
    training: Training
    rates: Rates
    transfers: Transfers

    values: ClassVar[Values] = {}
    repeats: ClassVar[Repeats] = {}
    reasons: ClassVar[Rules] = {}
    marks: ClassVar[Marks] = {}

    def exchange_block(self, block: Block, attention: Column | None) -> Exchanged:
        """Compute exposed seconds of a block and micro-batch, forward and backward.

        attention: seconds of both passes, which may hide it; None: nothing hides it.
        """
        return {}

    def exchange_iteration(self, held: Parameters, passes: Column | None) -> Exchanged:
        """Compute exposed seconds of an iteration.

        held: parameters of a PE. passes: seconds of a micro-batch forward and backward, which may
        hide it; None: nothing hides it.
        """
        return {}

    @cached_property
    def activations(self) -> Column:
        """Bytes of a micro-batch between two blocks, u h."""
        tokens = self.training.count_tokens(self.layouts)
        return tokens * self.net.hidden * self.training.recipe.item


def leave_rest(numbers: Iterable[int], degree: Column) -> Column:
    """Find layouts whose degree does not divide all of the numbers."""
    return find_any(number % degree > 0 for number in numbers)
