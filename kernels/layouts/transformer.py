"""Sizes of a transformer, the columns of candidate layouts, and how they train."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]

MODULES = (
    *("core_attn", "mlp", "moe", "shared_experts", "layernorm", "moe_act", "mla_up_proj"),
    *("blocks", "full"),
)
# What a layout computes again, as bits of a column: Megatron's modules; whole blocks; all of a
# stage in square-root parts (Chen et al. 2016).
RECOMPUTE: Mapping[str, int] = {name: 1 << bit for bit, name in enumerate(MODULES)}


class Recipe(NamedTuple):
    """Bytes of a parameter's weight, gradient and states; of a kept item; of a GEMM's input."""

    weights: int
    gradients: int
    states: int
    item: int
    read: int


# Megatron-LM, docs dist_optimizer.md; zero: Rajbhandari et al. 2020, section 3.1.
RECIPES: Mapping[str, Recipe] = {
    "bf16": Recipe(2, 4, 12, 2, 2),
    "fp16": Recipe(2, 2, 16, 2, 2),
    "fp32": Recipe(4, 4, 8, 4, 4),
    "fp8": Recipe(2, 4, 12, 2, 1),
    "zero": Recipe(2, 2, 12, 2, 2),
}


@dataclass(frozen=True)
class Latent:
    """Ranks and head sizes of multi-head latent attention (DeepSeek-V2, section 2.1).

    query_rank: 0 where queries are projected directly.
    """

    rank: int
    query_rank: int
    content: int
    rotary: int
    value: int


@dataclass(frozen=True)
class Transformer:
    """A decoder of equal blocks, some of which may have experts.

    matrices: g, of an MLP. norm: parameters of a normalisation a feature. expert_blocks: whether
    each block has experts. longest: the positions that the model knows, 0: any.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    ffn: int
    vocabulary: int
    expert_blocks: tuple[bool, ...]
    matrices: int = 3
    norm: int = 1
    tied: bool = False
    column_biases: bool = False
    row_biases: bool = False
    mlp_biases: bool = False
    head_norms: bool = False
    positions: int = 0
    longest: int = 0
    experts: int = 0
    top_k: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0
    router_biases: bool = False
    latent: Latent | None = None

    @property
    def blocks(self) -> int:
        """l, the number of blocks."""
        return len(self.expert_blocks)


@dataclass(frozen=True)
class Layouts:
    """Candidate layouts, a column of whole numbers [layouts] each.

    PEs are tensor x context x pipeline x data; experts divide tensor x context x data again.
    chunks: v of a stage; micro: b, sequences of a micro-batch; recompute: bits of RECOMPUTE; zero:
    the ZeRO stage; sequence: whether norms and dropout are divided over tensor, too.
    """

    tensor: Column
    context: Column
    pipeline: Column
    data: Column
    expert: Column
    chunks: Column
    micro: Column
    recompute: Column
    zero: Column
    sequence: Column

    def __len__(self) -> int:
        return len(self.tensor)

    @classmethod
    def from_rows(cls, rows: Column) -> Self:
        """The layouts of rows [layouts, columns]."""
        return cls(*np.ascontiguousarray(rows.T))

    def to_rows(self) -> Column:
        """The columns as rows [layouts, columns]."""
        return np.stack([getattr(self, each.name) for each in fields(self)], axis=1)

    def select(self, rows: Column) -> Self:
        """The layouts of a mask, or of numbers of rows."""
        return type(self)(*(getattr(self, each.name)[rows] for each in fields(self)))

    @property
    def sigma(self) -> Column:
        """Parts of what sequence parallelism divides: t, or 1 without it."""
        return np.where(self.sequence > 0, self.tensor, 1)

    @property
    def shards(self) -> Column:
        """Ranks that share the states of all but routed experts: data x context."""
        return self.data * self.context

    @property
    def expert_shards(self) -> Column:
        """Ranks that share the states of routed experts."""
        return self.shards // self.expert


@dataclass(frozen=True)
class Training:
    """How all layouts train.

    batch: B [sequences]; length: s [tokens]. schedule: of pipelines of one chunk a stage, a name of
    `kernels.layouts.schedules`. context_by: ring, all_gather or all_to_all. reserved [B]: what
    others take of a PE's memory.
    """

    batch: int
    length: int
    precision: str = "bf16"
    schedule: str = "1f1b"
    context_by: str = "ring"
    fused_attention: bool = True
    fused_loss: bool = False
    dropout: bool = False
    reserved: float = 0.0

    @property
    def recipe(self) -> Recipe:
        """The bytes of its precision."""
        return RECIPES[self.precision]

    def count_micro_batches(self, layouts: Layouts) -> Column:
        """m of an iteration [layouts]."""
        return self.batch // (layouts.data * layouts.micro)

    def count_tokens(self, layouts: Layouts) -> Column:
        """u, tokens of a micro-batch on a PE [layouts]."""
        return layouts.micro * self.length / layouts.context
