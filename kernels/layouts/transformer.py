"""Layers of a transformer, the columns of candidate layouts, and how they train."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from paradl.kernels.layouts.columns import Column
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS, LAYOUT_DEGREES
from paradl.kernels.names.recipes import Recipe

Family = Literal["dense", "experts", "images"]


class Weights(NamedTuple):
    """Parameters of a layer: matrix and biases.

    parts: most parts that tensor parallelism divides the matrix into; 0: every PE holds all of it.
    by_columns: the biases are divided as well. experts: number of routed experts, all of which the
    layer holds; 0: it is no layer of experts. used: fraction of the matrix that each token is
    multiplied with. modules: RECOMPUTE bits, any of which repeats this product in the backward
    pass.
    """

    matrix: float
    biases: float = 0.0
    parts: int = 0
    by_columns: bool = False
    experts: int = 0
    used: float = 1.0
    modules: int = 0

    @property
    def is_routed(self) -> bool:
        """True for a layer of routed experts."""
        return self.experts > 0


class Tensor(NamedTuple):
    """Activation kept for the backward pass.

    items: per token; for attention scores, per token and position. size: bytes per item, a key of
    `kernels.layouts.memory.SIZES`. divided: which PEs share it, a key of
    `kernels.layouts.memory.DIVISORS`; parts: most parts over tensor. modules: RECOMPUTE bits, any
    of which recomputes it instead of keeping it. window: of scores, the positions of a query; 0:
    all.
    """

    items: float
    size: str
    divided: str
    parts: int = 0
    modules: int = 0
    window: int = 0


def count_keys(length: int, window: int) -> int:
    """Count the positions of a sequence that a query may read; window 0: all."""
    return min(length, window or length)


class AttentionProducts(NamedTuple):
    """Queries that read keys and values.

    flops: of both products, forward, per token and position read. heads, kv_heads: of queries, and
    of keys and values. causal: no query reads a later position. window: most positions that a query
    reads; 0: all.
    """

    flops: float
    heads: int
    kv_heads: int
    causal: bool = False
    window: int = 0

    @property
    def width(self) -> float:
        """Features of a head; the mean of keys' and values' where these differ."""
        return self.flops / (4 * self.heads)

    def count_keys(self, length: int, skips_later: bool) -> float:
        """Positions that a query of a sequence reads on average; all, or none that are later."""
        keys = count_keys(length, self.window)
        # The first `keys` queries read fewer: half of them on average.
        return keys * (1 - keys / (2 * length)) if skips_later and self.causal else keys


class Block(NamedTuple):
    """Layers between two possible pipeline cuts.

    looks_up: has an embedding table; reads_memory: attends to the encoder's output.
    """

    weights: tuple[Weights, ...]
    tensors: tuple[Tensor, ...]
    attentions: tuple[AttentionProducts, ...] = ()
    looks_up: bool = False
    reads_memory: bool = False


@dataclass(frozen=True)
class Transformer:
    """A transformer: a sequence of blocks between `front` (embedding) and `back` (output layer).

    kinds: the distinct blocks; order: the kind of each block, a pipeline may cut between any two.
    heads, kv_heads, ffn, expert_ffn, experts: the distinct values over all blocks. vocabulary: 0
    without an embedding table; ties: the output layer shares that table. parameters: as published,
    without padding or copies. longest: positions it was trained for, 0 if unknown; length: fixed
    sequence length, 0 if free. memory: the encoder's output, kept once for all blocks that read it.
    """

    hidden: int
    vocabulary: int
    kinds: tuple[Block, ...]
    order: tuple[int, ...]
    front: Block
    back: Block
    parameters: int
    heads: tuple[int, ...]
    kv_heads: tuple[int, ...]
    ffn: tuple[int, ...]
    expert_ffn: tuple[int, ...] = ()
    experts: tuple[int, ...] = ()
    ties: bool = False
    longest: int = 0
    length: int = 0
    memory: Tensor | None = None

    @property
    def family(self) -> Family:
        """The kind of network, whose predictions err alike."""
        return "images" if self.length else "experts" if self.experts else "dense"

    @property
    def blocks(self) -> int:
        """l, the number of blocks."""
        return len(self.order)


# In row order, which also breaks ties between layouts.
COLUMNS = tuple(LAYOUT_COLUMNS)
ALL_COLUMNS = (*COLUMNS, "batch", "flushes", "machine")


@dataclass(frozen=True)
class Layouts:
    """Candidate layouts as columns of integers: [layouts] each, or arrays that broadcast.

    LAYOUT_COLUMNS describes them. PEs = tensor x context x pipeline x data. Experts divide tensor x
    context x data once more, into expert_tensor x expert x replicas. group: N of interleaving,
    consecutive micro-batches per chunk. A 0 means: tensor for expert_tensor, pipeline for group,
    data x context for shard. batch: B [sequences] if it differs between layouts. flushes: A, into
    which an iteration is cut, each filling and draining a pipeline; None: one. machine: index into
    the rates and networks of several machines.
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
    expert_tensor: Column
    group: Column
    shard: Column
    batch: Column | None = None
    flushes: Column | None = None
    machine: Column | None = None

    def __len__(self) -> int:
        return len(self.tensor)

    @classmethod
    def from_rows(cls, rows: Column) -> "Layouts":
        """Layouts from rows [layouts, columns]."""
        return cls(**dict(zip(COLUMNS, np.ascontiguousarray(rows.T), strict=True)))

    @classmethod
    def from_names(cls, rows: Iterable[Mapping[str, int]]) -> "Layouts":
        """Layouts from columns by name, with the usual numbers of the rest."""
        table = [
            [row.get(name, column.usual) for name, column in LAYOUT_COLUMNS.items()] for row in rows
        ]
        return cls.from_rows(np.array(table, int).reshape(-1, len(COLUMNS)))

    @classmethod
    def join(cls, lists: Sequence["Layouts"]) -> "Layouts":
        """Join lists of layouts that have the same columns."""
        names = [name for name in ALL_COLUMNS if getattr(lists[0], name) is not None]
        return cls(**{n: np.concatenate([getattr(one, n) for one in lists]) for n in names})

    def to_rows(self) -> Column:
        """The columns as rows [layouts, columns]."""
        return np.stack([getattr(self, name) for name in COLUMNS], axis=1)

    def shard_over(self, ranks: Column) -> "Layouts":
        """Layouts whose ZeRO shards over this many ranks [layouts]; 0 or all ranks: 0."""
        is_part = (self.zero > 0) & (ranks != self.data * self.context)
        return replace(self, shard=np.where(is_part, ranks, 0))

    def round_batch(self) -> "Layouts":
        """Layouts of the nearest whole batch, for rules that divide it."""
        if self.batch is None or self.batch.dtype.kind == "i":
            return self
        batch, micro = (np.rint(number).astype(int) for number in (self.batch, self.micro))
        return replace(self, batch=batch, micro=micro)

    def select(self, rows: Column) -> "Layouts":
        """Select layouts of a list, by mask or by row number."""
        return self.map_columns(lambda column: column[rows])

    def take(self, rows: Column | slice, axis: int) -> "Layouts":
        """Select positions along one axis of a product."""
        # A column of length 1 along a longer axis has that value at every position.
        at, length = (*([slice(None)] * axis), rows), self.shape[axis]
        return self.map_columns(
            lambda column: column[at] if column.shape[axis] == length else column
        )

    def list_rows(self, numbers: Column) -> "Layouts":
        """List the layouts at these flat positions of a product (C order)."""
        shape = self.shape
        at = np.unravel_index(numbers, shape)
        return self.map_columns(lambda column: np.broadcast_to(column, shape)[at])

    def map_columns(self, change: Callable[[Column], Column]) -> "Layouts":
        """Apply a function to every column."""
        columns = ((name, getattr(self, name)) for name in ALL_COLUMNS)
        return replace(
            self, **{name: change(column) for name, column in columns if column is not None}
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that columns broadcast to."""
        return np.broadcast_shapes(*(getattr(self, name).shape for name in COLUMNS))

    @property
    def pes(self) -> Column:
        """n, PEs of each layout."""
        return self.replica * self.data

    @property
    def replica(self) -> Column:
        """PEs of a replica of the network."""
        sizes: Column = prod(getattr(self, name) for name in LAYOUT_DEGREES)
        return sizes

    @property
    def sigma(self) -> Column:
        """Ranks that share norms and dropout: t with sequence parallelism, else 1."""
        return np.where(self.sequence > 0, self.tensor, 1)

    @property
    def etp(self) -> Column:
        """Tensor-parallel degree of each expert."""
        return np.where(self.expert_tensor > 0, self.expert_tensor, self.tensor)

    @property
    def passes(self) -> Column:
        """N: consecutive micro-batches per chunk."""
        return np.where(self.group > 0, self.group, self.pipeline)

    @property
    def shards(self) -> Column:
        """Ranks that shard the states of all parameters but routed experts."""
        return np.where(self.shard > 0, self.shard, self.data * self.context)

    @property
    def expert_replicas(self) -> Column:
        """Replicas of routed experts; 0 with more parts of experts than PEs."""
        # Integer division: a product also holds layouts whose experts do not divide their PEs.
        replicas: Column = self.tensor * self.context * self.data // (self.etp * self.expert)
        return replicas

    @property
    def expert_shards(self) -> Column:
        """Ranks that shard the states of routed experts: their replicas, at most `shard`."""
        replicas = self.expert_replicas
        shared: Column = np.where(self.shard > 0, np.minimum(replicas, self.shard), replicas)
        return shared


@dataclass(frozen=True)
class Training:
    """Settings of the training run, common to all layouts.

    batch: B [sequences]; length: s [tokens]. schedule: for one chunk per stage, a key of
    `kernels.layouts.schedules`. context_by: ring, all_gather or all_to_all. loss_parts: chunks in
    which logits are computed, one at a time. logit_bytes: per logit, 0 with a fused loss. reserved
    [B]: memory of a PE taken by driver, framework and communication buffers.
    """

    batch: int
    length: int
    recipe: Recipe
    schedule: str = "1f1b"
    context_by: str = "ring"
    fused_attention: bool = True
    logit_bytes: float = 4.0
    loss_parts: int = 1
    dropout: bool = False
    reserved: float = 0.0

    def find_batch(self, layouts: Layouts) -> Column | int:
        """Global batch B, [layouts] or one for all."""
        return self.batch if layouts.batch is None else layouts.batch

    def count_flushes(self, layouts: Layouts) -> Column | int:
        """Flushes A per iteration, [layouts] or one for all."""
        return 1 if layouts.flushes is None else layouts.flushes

    def count_least(self, layouts: Layouts) -> Column:
        """Sequences of a micro-batch in each replica and flush, of which B is a multiple."""
        least: Column = layouts.data * layouts.micro * self.count_flushes(layouts)
        return least

    def count_micro_batches(self, layouts: Layouts) -> Column:
        """Micro-batches m per flush [layouts]; a part of one for a batch between whole numbers."""
        batch, least = np.asarray(self.find_batch(layouts)), self.count_least(layouts)
        micro_batches: Column = batch // least if batch.dtype.kind == "i" else batch / least
        return micro_batches

    def count_passes(self, layouts: Layouts) -> Column:
        """Micro-batches A m per iteration [layouts]."""
        passes: Column = self.count_flushes(layouts) * self.count_micro_batches(layouts)
        return passes

    def count_tokens(self, layouts: Layouts) -> Column:
        """Tokens u per micro-batch and PE [layouts]."""
        return layouts.micro * self.length / layouts.context
