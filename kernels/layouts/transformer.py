"""Layers of a transformer, the columns of candidate layouts, and how they train."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Self

import numpy as np

from kernels.layouts.columns import Column
from kernels.names import recomputation
from kernels.names.recipes import Recipe

RECOMPUTE = recomputation.RECOMPUTE


class Weights(NamedTuple):
    """Parameters of a layer: of its matrix, and its biases.

    parts: tensor parallelism divides the matrix in so many at most; 0: each PE has all of it.
    by_columns: biases are divided, too. is_routed: they are those of all routed experts. used: the
    share of the matrix that a token is multiplied with. modules: bits of RECOMPUTE, each of which
    computes the product again.
    """

    matrix: float
    biases: float = 0.0
    parts: int = 0
    by_columns: bool = False
    is_routed: bool = False
    used: float = 1.0
    modules: int = 0


class Tensor(NamedTuple):
    """What the backward pass reads: items a token, and of scores a token and position.

    size: which bytes an item has, a name of `kernels.layouts.memory.SIZES`. divided: by what, a
    name of `kernels.layouts.memory.DIVISORS`; over tensor in so many parts at most. modules: bits
    of RECOMPUTE, each of which computes it again.
    """

    items: float
    size: str
    divided: str
    parts: int = 0
    modules: int = 0


class Block(NamedTuple):
    """Layers between two cuts.

    scores: FLOPs forward of attention's two products, a token and position that it reads. looks_up:
    with a table of words; reads_memory: of the encoder.
    """

    weights: tuple[Weights, ...]
    tensors: tuple[Tensor, ...]
    scores: float = 0.0
    looks_up: bool = False
    reads_memory: bool = False


@dataclass(frozen=True)
class Transformer:
    """A network of blocks that a pipeline may part: few kinds, in an order; before and behind them.

    heads, kv_heads, ffn, expert_ffn, experts: each number that there is. vocabulary: 0: no table of
    words; ties: whether the last matrix is that table. parameters: as published, nothing padded or
    twice. longest: the positions that it was trained for, 0: not said; length: of its sequences, 0:
    any. memory: what the encoder gives, which all blocks that read it keep together.
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
    def blocks(self) -> int:
        """l, the number of blocks."""
        return len(self.order)


@dataclass(frozen=True)
class Layouts:
    """Candidate layouts, a column of whole numbers each: [layouts], or arrays that broadcast.

    PEs are tensor x context x pipeline x data; experts divide tensor x context x data again, in
    expert_tensor x expert x replicas. chunks: v of a stage; micro: b, sequences of a micro-batch;
    recompute: bits of RECOMPUTE; zero: the ZeRO stage; sequence: whether norms and dropout are
    divided over tensor, too. group: N of interleaving, micro-batches that follow each other in a
    chunk. shard: ranks that ZeRO divides over, as HSDP does. 0 of expert_tensor: tensor; of group:
    pipeline; of shard: data x context. batch: B [sequences], where it differs between layouts.
    machine: numbers among those of rates and of a network, where these are of several machines.
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
    machine: Column | None = None

    def __len__(self) -> int:
        return len(self.tensor)

    @classmethod
    def from_rows(cls, rows: Column) -> Self:
        """The layouts of rows [layouts, columns]; the last three columns may be left out."""
        more = np.zeros((len(rows), len(COLUMNS) - rows.shape[1]), int)
        return cls(*np.ascontiguousarray(np.hstack([rows, more]).T))

    def to_rows(self) -> Column:
        """The columns as rows [layouts, columns]."""
        return np.stack([getattr(self, name) for name in COLUMNS], axis=1)

    def select(self, rows: Column) -> Self:
        """The layouts of a mask, or of numbers of rows, of a list."""
        return self.map_columns(lambda column: column[rows])

    def take(self, rows: Column | slice, axis: int) -> Self:
        """A product with some of an axis's places."""
        # A column with one value along the axis has it at every place.
        at = (*([slice(None)] * axis), rows)
        return self.map_columns(lambda column: column if column.shape[axis] == 1 else column[at])

    def list_rows(self, numbers: Column) -> Self:
        """The list of a product's layouts of these numbers, in which the last axis runs fastest."""
        shape = self.shape
        at = np.unravel_index(numbers, shape)
        return self.map_columns(lambda column: np.broadcast_to(column, shape)[at])

    def map_columns(self, change: Callable[[Column], Column]) -> Self:
        """The layouts with each column changed."""
        names = (*COLUMNS, "batch", "machine")
        columns = ((name, getattr(self, name)) for name in names)
        return replace(self, **{name: change(each) for name, each in columns if each is not None})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that columns broadcast to."""
        return np.broadcast_shapes(*(getattr(self, name).shape for name in COLUMNS))

    @property
    def pes(self) -> Column:
        """n, PEs of each layout."""
        return self.tensor * self.context * self.pipeline * self.data

    @property
    def sigma(self) -> Column:
        """Parts of what sequence parallelism divides: t, or 1 without it."""
        return np.where(self.sequence > 0, self.tensor, 1)

    @property
    def etp(self) -> Column:
        """PEs that share each matrix of an expert."""
        return np.where(self.expert_tensor > 0, self.expert_tensor, self.tensor)

    @property
    def passes(self) -> Column:
        """N: micro-batches that follow each other in a chunk."""
        return np.where(self.group > 0, self.group, self.pipeline)

    @property
    def shards(self) -> Column:
        """Ranks that share the states of all but routed experts."""
        return np.where(self.shard > 0, self.shard, self.data * self.context)

    @property
    def expert_shards(self) -> Column:
        """Ranks that share the states of routed experts: replicas of these, `shard` at most."""
        # Whole numbers, also in a product's layouts whose experts do not divide their PEs.
        replicas = self.tensor * self.context * self.data // (self.etp * self.expert)
        shared: Column = np.where(self.shard > 0, np.minimum(replicas, self.shard), replicas)
        return shared


# In the order of a row: ties of layouts are resolved by it.
COLUMNS = tuple(each.name for each in fields(Layouts))[:-2]  # all but batch and machine


@dataclass(frozen=True)
class Training:
    """How all layouts train.

    batch: B [sequences]; length: s [tokens]. schedule: of pipelines of one chunk a stage, a name of
    `kernels.layouts.schedules`. context_by: ring, all_gather or all_to_all. loss_parts: logits are
    there in so many, one after the other. logit_bytes: of each, 0 of a fused loss. reserved [B]:
    what others take of a PE's memory.
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
        """B [layouts], or one of all."""
        return self.batch if layouts.batch is None else layouts.batch

    def count_micro_batches(self, layouts: Layouts) -> Column:
        """m of an iteration [layouts]."""
        micro_batches: Column = self.find_batch(layouts) // (layouts.data * layouts.micro)
        return micro_batches

    def count_tokens(self, layouts: Layouts) -> Column:
        """u, tokens of a micro-batch on a PE [layouts]."""
        return layouts.micro * self.length / layouts.context
