"""Base class of the dimensions of a layout: tensor, context, expert, pipeline, replicas.

To add a degree: its row in `kernels.names.parallelisms`, its column in `Layouts` (transformer.py)
and in `LayoutRow` of `sweep.answers.types.fitting`, a file NAME.py here with a `Dimension`, which
`DIMENSIONS` of dimensions.py lists. A setting: the first three. A rule: a row of `list_rules`. How
tensor parallelism divides a layer, and what recomputes it: `Role` of `grids.models.tensors`, in the
layer's step. Formulas: docs/transformers.md. Tests: tests/test_layouts.py (it equals the scalar
reference), tests/grids/test_transformers.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from paradl.kernels.columns import Column
from paradl.kernels.machine.rates import Rates
from paradl.kernels.parallelism.rules import Rules
from paradl.kernels.parallelism.transfers import Transfers
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.parameters import Parameters
from paradl.kernels.work.transformer import Block, Training, Transformer

# By name: the layouts that each applies to [layouts].
Marks = Mapping[str, Callable[[Transformer, Layouts, Training, int], Column]]
Repeats = Mapping[str, Callable[[Layouts], Column]]
Values = Mapping[str, Callable[[Transformer, int, int], Iterable[int]]]
Exchanged = Mapping[str, Column]  # seconds by term


@dataclass(frozen=True)
class Dimension:
    """One way in which layouts divide the training of a transformer among PEs.

    values: values of its columns that a search tries, given the PEs and the largest batch. repeats:
    masks of duplicates, by the column that has nothing to divide. marks: masks of layouts that run
    but are odd, given the PEs per node.
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
