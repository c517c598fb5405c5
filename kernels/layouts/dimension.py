"""Base class of the dimensions of a layout: tensor, context, expert, pipeline, replicas.

A dimension says which degrees it may have and what its PEs send each other. Its words stand in
`kernels.names`, since `paradl strategies` and a spec's messages need them without numpy or JAX.

To add one: a file NAME.py here with a `Dimension`, its row in `DIMENSIONS` of dimensions.py, its
words in `kernels.names.parallelisms`. A rule: a row of its `list_rules`. A setting: a column
of `Layouts` (transformer.py), its short word in `WORDS` and its name in `LAYOUT_SETTINGS` of
`kernels.names.parallelisms`, a row of `LAYOUT` in `grids.entries.layout_parameters`. How tensor
parallelism divides a layer, and what recomputes it: `Role` of `grids.models.tensors`, in the
layer's step. Formulas: docs/transformers.md. Tests: tests/test_layouts.py (it equals the scalar
reference), tests/grids/test_transformers.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

from paradl.kernels.layouts.columns import Column, find_any
from paradl.kernels.layouts.parameters import Parameters
from paradl.kernels.layouts.rates import Rates
from paradl.kernels.layouts.transfers import Transfers
from paradl.kernels.layouts.transformer import Block, Layouts, Training, Transformer

# By name: the layouts that each applies to [layouts].
Marks = Mapping[str, Callable[[Transformer, Layouts, Training, int], Column]]
Repeats = Mapping[str, Callable[[Layouts], Column]]
Values = Mapping[str, Callable[[Transformer, int], Iterable[int]]]
Exchanged = Mapping[str, Column]  # seconds by term


class Rule(NamedTuple):
    """A rule that forbids layouts, whatever their memory.

    mask: layouts that break it [layouts]. reason: why the first one does, in words. remedy: what
    would let layouts divide.
    """

    mask: Column
    reason: str
    remedy: str


Rules = Mapping[str, Rule]


@dataclass(frozen=True)
class Dimension:
    """One way in which layouts divide the training of a transformer among PEs.

    values: values of its columns that a search tries on a number of PEs. repeats: masks of
    duplicates, by the column that has nothing to divide. marks: masks of layouts that run but are
    odd, given the PEs per node.
    """

    net: Transformer
    layouts: Layouts
    training: Training
    rates: Rates
    transfers: Transfers

    values: ClassVar[Values] = {}
    repeats: ClassVar[Repeats] = {}
    marks: ClassVar[Marks] = {}

    @staticmethod
    def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
        """Return the rules that forbid layouts, by name."""
        return {}

    def exchange_block(self, block: Block, hiding: Sequence[Column] | None) -> Exchanged:
        """Compute exposed communication of a block [s per micro-batch], forward and backward.

        hiding: seconds of each of its attentions, which can hide it; None to hide nothing.
        """
        return {}

    def exchange_iteration(self, held: Parameters, passes: Column | None) -> Exchanged:
        """Compute exposed communication [s per iteration] beyond that of blocks.

        held: parameters on a PE. passes: forward and backward seconds of a micro-batch, which can
        hide it; None to hide nothing.
        """
        return {}

    @cached_property
    def activations(self) -> Column:
        """Bytes between two blocks per micro-batch: u h items."""
        tokens = self.training.count_tokens(self.layouts)
        return tokens * self.net.hidden * self.training.recipe.item


def leave_rest(numbers: Iterable[int], degree: Column) -> Column:
    """Find layouts whose degree does not divide all of the numbers."""
    return find_any(number % degree > 0 for number in numbers)


def join_numbers(numbers: Iterable[int]) -> str:
    """Write numbers for a message."""
    return " and ".join(map(str, numbers))
