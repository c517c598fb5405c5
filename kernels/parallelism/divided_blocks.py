"""Blocks of a network as layouts divide them, and what parallelisms say of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from paradl.kernels.columns import Column
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
