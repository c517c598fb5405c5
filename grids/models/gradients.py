"""What the backward pass reads of each layer, and through which layers gradients pass.

With adapters gradients pass through all layers, the first ones as well: peft's
`enable_input_require_grads`, which recomputation needs.
"""

from collections.abc import Sequence
from functools import cached_property

from paradl.grids.models.kinds import KINDS
from paradl.grids.models.layers import SAMPLE, LayerTable
from paradl.grids.models.tuning import Tuning
from paradl.grids.reading.errors import InputError

# Kinds linear in their input, which gradients of their own weights alone need.
LINEAR = ("linear", "conv", "fc", "embedding", "lora_sum")


class Gradients:
    """Gradients of a network's layers. blocks: the rows of each; tuning: None trains all."""

    def __init__(
        self, table: LayerTable, blocks: Sequence[tuple[int, int]], tuning: Tuning | None
    ) -> None:
        self.table, self.blocks, self.tuning = table, blocks, tuning

    @cached_property
    def first(self) -> int:
        """The first row that gradients reach. InputError: there are fewer blocks to freeze."""
        if self.tuning is None or self.tuning.freeze is None:
            return 0 if self.tuning else SAMPLE
        frozen = self.tuning.freeze
        ends = [self.blocks[0][0], *(end for _, end in self.blocks)]
        if frozen >= len(ends):
            what, where = f"the network has {len(ends) - 1} blocks", f"freeze={frozen}"
            raise InputError(what, where=where, advice="write at most as many")
        return ends[frozen]

    def reach(self, row: int) -> bool:
        """Whether a gradient of a layer's output, or of the sample, is needed."""
        return row >= self.first

    def train(self, row: int) -> bool:
        """Whether a layer's weights are trained."""
        if self.tuning is None or self.tuning.lora:
            return self.tuning is None or self.table.roles[row].rank > 0
        return self.reach(row) and bool(self.table.w[row] + self.table.bias[row] > 0)

    def keep(self, maker: int) -> tuple[bool, float]:
        """Whether the backward pass reads a layer's output, and the share of five accesses that
        move it: two forward, two of its gradient, and one to read it.
        """
        is_kept = any(
            self.train(row) if self.table.kinds[row] in LINEAR else self.reach(row)
            for row in self.readers[maker]
        )
        # Fused attention reads its own output.
        is_own = maker != SAMPLE and self.table.kinds[maker] == "matmul" and self.reach(maker)
        return is_kept or is_own, (2 + 2 * self.reach(maker) + (is_kept or is_own)) / 5

    def share_products(self, row: int) -> float:
        """Share of a matrix's three products: forward, and gradients of its weights and input."""
        return (1 + self.train(row) + self.reach(self.table.inputs[row][0])) / 3

    @cached_property
    def readers(self) -> dict[int, list[int]]:
        """The layers whose backward pass reads each output; key -1 is the sample."""
        readers: dict[int, list[int]] = {}
        for row, kind in enumerate(map(KINDS.__getitem__, self.table.kinds)):
            if kind.keeps_input:
                for maker in self.table.inputs[row]:
                    readers.setdefault(maker, []).append(row)
            if kind.keeps_output:
                readers.setdefault(row, []).append(row)
        return readers

    @cached_property
    def read(self) -> dict[int, list[int]]:
        """The kept outputs that each layer reads: `readers`, the other way round."""
        read: dict[int, list[int]] = {}
        for maker, rows in self.readers.items():
            for row in rows:
                read.setdefault(row, []).append(maker)
        return read
