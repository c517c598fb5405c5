"""The outputs of a transformer's layers: how they are divided, recomputed and read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from paradl.grids.models.kinds import (
    KINDS,
    Activation,
    CurvedActivation,
    LayerKind,
    Normalisation,
    Product,
)
from paradl.grids.models.layers import SAMPLE, LayerTable
from paradl.kernels.names.parallelisms import RECOMPUTE


@dataclass(frozen=True)
class Share:
    """How an output is divided (a name of DIVISORS), and the most parts over tensor ranks."""

    divided: str = "sequence"
    parts: int = 0


def _passes_on(kind: LayerKind) -> bool:
    """True if a layer counts as part of the module before it."""
    return isinstance(kind, Activation | CurvedActivation | Product) or kind.name == "rotary"


class LayerOutputs:
    """The outputs of a table's layers; blocks: first row, and end row, of each block."""

    def __init__(self, table: LayerTable, blocks: Sequence[tuple[int, int]]) -> None:
        self.table, self.roles, self.blocks = table, table.roles, blocks
        self.kinds: list[LayerKind] = [KINDS[kind] for kind in table.kinds]

    @cached_property
    def shares(self) -> list[Share]:
        """How each layer's output is divided."""
        shares: list[Share] = []
        for row, role in enumerate(self.roles):
            maker, name = self.table.inputs[row][0], self.kinds[row].name
            if role.divided == "columns":
                shares.append(Share("tensor", role.parts))
            elif name == "dispatch":
                shares.append(Share("dispatched"))
            # Behind a matrix divided by rows, outputs are summed over ranks, and so whole again.
            elif role.divided or name in ("linear", "combine") or maker == SAMPLE:
                shares.append(Share())
            else:  # an element-wise layer, which works on what it gets
                shares.append(shares[maker])
        return shares

    @cached_property
    def modules(self) -> list[int]:
        """Modules whose recomputation covers each layer's output, as bits of RECOMPUTE."""
        names: list[str] = []
        for row, (kind, role) in enumerate(zip(self.kinds, self.roles, strict=True)):
            maker = self.table.inputs[row][0]
            name = role.module
            # Norms inside heads, which tensor ranks divide, are not Megatron's `layernorm`.
            if isinstance(kind, Normalisation) and self.shares[row].divided == "sequence":
                name = name or "layernorm"
            elif _passes_on(kind) and maker != SAMPLE:
                name = name or names[maker]
            names.append(name)
        return [self._find_bits(row, name) for row, name in enumerate(names)]

    def _find_bits(self, row: int, name: str) -> int:
        if self.roles[row].experts:
            acts = RECOMPUTE["moe_act"] if _passes_on(self.kinds[row]) else 0
            return RECOMPUTE["moe"] | acts
        # Beside routed experts an MLP is a shared one, computed again with them or by itself.
        if name == "mlp" and row in self._beside_experts:
            return RECOMPUTE["moe"] | RECOMPUTE["shared_experts"]
        return RECOMPUTE.get(name, 0)

    @cached_property
    def _beside_experts(self) -> set[int]:
        """The layers of blocks with experts."""
        return {
            row
            for start, end in self.blocks
            if any(role.experts for role in self.roles[start:end])
            for row in range(start, end)
        }

    @cached_property
    def readers(self) -> dict[int, list[int]]:
        """The layers whose backward pass reads each output; key -1 is the sample."""
        readers: dict[int, list[int]] = {}
        for row, kind in enumerate(self.kinds):
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

    def find_size(self, maker: int, readers: list[int]) -> str:
        """Return the bytes per item, as a name of SIZES."""
        kind, role = self.kinds[maker], self.roles[maker]
        if kind.name == "softmax":
            is_last = self.roles[self.table.inputs[maker][0]].of == "vocabulary"
            # Routers' probabilities are in single precision.
            scores = "scores" if role.module == "core_attn" else "single"
            return "logits" if is_last else scores
        if kind.name == "matmul":
            return "context"
        # In low precisions, an output that only matrices read is kept in their input's format.
        by_matrices = all(
            self.kinds[row].name == "linear" and self.roles[row].of != "vocabulary"
            for row in readers
        )
        return "read" if by_matrices else "item"
