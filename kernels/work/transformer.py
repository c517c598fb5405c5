"""Layers of a network with blocks of attention, how it trains, and its parameters on a PE."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from paradl.kernels.columns import Column
from paradl.kernels.names.recipes import Recipe
from paradl.kernels.work.layouts import Layouts

Family = Literal["dense", "experts", "images", "tuned"]


class Weights(NamedTuple):
    """Parameters of a layer: matrix and biases.

    parts: most parts that tensor parallelism divides the matrix into; 0: every PE holds all of it.
    by_columns: the biases are divided as well. experts: number of routed experts, all of which the
    layer holds; 0: it is no layer of experts. used: fraction of the matrix that each token is
    multiplied with. modules: RECOMPUTE bits, any of which repeats this product in the backward
    pass. trained: else frozen, without gradients and states. share: of three products, forward, for
    the gradient of its weights, and for that of its input. rank: of an adapter's matrix, its side
    that no PE divides. stored: bytes of a weight of the matrix, 0: as of others.
    """

    matrix: float
    biases: float = 0.0
    parts: int = 0
    by_columns: bool = False
    experts: int = 0
    used: float = 1.0
    modules: int = 0
    trained: bool = True
    share: float = 1.0
    rank: int = 0
    stored: float = 0.0

    @property
    def is_routed(self) -> bool:
        """True for a layer of routed experts."""
        return self.experts > 0


class Tensor(NamedTuple):
    """Activation kept for the backward pass.

    items: per token; for attention scores, per token and position. size: bytes per item, a key of
    SIZES, and divided: which PEs share it, a key of DIVISORS, in `kernels.work.block_memory`.
    parts: most parts over tensor. modules: RECOMPUTE bits, any of which recomputes it instead of
    keeping it. window: of scores, the positions of a query; 0: all. kept: whether the backward pass
    reads it; moved: share of five accesses that moves it and its gradient.
    """

    items: float
    size: str
    divided: str
    parts: int = 0
    modules: int = 0
    window: int = 0
    kept: bool = True
    moved: float = 1.0


def count_keys(length: int, window: int) -> int:
    """Count the positions of a sequence that a query may read; window 0: all."""
    return min(length, window or length)


class AttentionProducts(NamedTuple):
    """Queries that read keys and values.

    flops: of both products, forward, per token and position read. heads, kv_heads: of queries, and
    of keys and values. causal: no query reads a later position. window: most positions that a query
    reads; 0: all. returns: the backward pass has gradients of it.
    """

    flops: float
    heads: int
    kv_heads: int
    causal: bool = False
    window: int = 0
    returns: bool = True

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

    looks_up: has an embedding table; reads_memory: attends to the encoder's output. trains_tables:
    its tables are trained.
    """

    weights: tuple[Weights, ...]
    tensors: tuple[Tensor, ...]
    attentions: tuple[AttentionProducts, ...] = ()
    looks_up: bool = False
    reads_memory: bool = False
    trains_tables: bool = True

    def keep_trained(self) -> "Block":
        """Return the block without frozen weights and tables."""
        weights = tuple(part for part in self.weights if part.trained)
        return self._replace(weights=weights, looks_up=self.looks_up and self.trains_tables)


@dataclass(frozen=True)
class Transformer:
    """A transformer: a sequence of blocks between `front` (embedding) and `back` (output layer).

    kinds: the distinct blocks; order: the kind of each block, a pipeline may cut between any two.
    heads, kv_heads, ffn, expert_ffn, experts: the distinct values over all blocks. vocabulary: 0
    without an embedding table; ties: the output layer shares that table. parameters: as published,
    without padding or copies. longest: positions it was trained for, 0 if unknown; length: fixed
    sequence length, 0 if free. memory: the encoder's output, kept once for all blocks that read it.
    is_tuned: some of it is frozen. scored: as `share` of weights, of the output layer's.
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
    is_tuned: bool = False
    scored: float = 1.0

    @cached_property
    def trained(self) -> "Transformer":
        """The part that has gradients and states."""
        if not self.is_tuned:
            return self
        front, back, *kinds = map(Block.keep_trained, (self.front, self.back, *self.kinds))
        return replace(self, kinds=tuple(kinds), front=front, back=back)

    @property
    def family(self) -> Family:
        """The kind of network, whose predictions err alike."""
        usual: Family = "images" if self.length else "experts" if self.experts else "dense"
        return "tuned" if self.is_tuned else usual

    @property
    def blocks(self) -> int:
        """l, the number of blocks."""
        return len(self.order)


class Unsharded(NamedTuple):
    """What software holds whole at a time, of parameters that ZeRO shards.

    share: of a block, in one message. weights, gradients: at least so many parameters are gathered,
    or wait to be reduced. with_stages: all of a pipeline's stage, between its micro-batches.
    """

    share: float = 1.0
    weights: float = 0.0
    gradients: float = 0.0
    with_stages: bool = False


BLOCK_BY_BLOCK = Unsharded()


@dataclass(frozen=True)
class Training:
    """Settings of the training run, common to all layouts.

    batch: B [sequences]; length: s [tokens]. schedule: for one chunk per stage, a key of
    `kernels.work.schedules`. context_by: ring, all_gather or all_to_all. loss_parts: chunks in
    which logits are computed, one at a time. logit_bytes: per logit, 0 with a fused loss. reserved
    [B]: memory of a PE taken by driver, framework and communication buffers. unsharded: temporaries
    of ZeRO. document: tokens of a packed document, 0: a sequence is one. keeps_states,
    keeps_activations: whether PEs keep the optimizer's states, and what blocks do, or their hosts.
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
    unsharded: Unsharded = BLOCK_BY_BLOCK
    document: int = 0
    keeps_states: bool = True
    keeps_activations: bool = True

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
        batch, least = self.find_batch(layouts), self.count_least(layouts)
        # Those of cells are no integers: a slope in the batch looks between whole numbers.
        is_whole = isinstance(batch, int) or batch.dtype.kind == "i"
        micro_batches: Column = batch // least if is_whole else batch / least
        return micro_batches

    def count_passes(self, layouts: Layouts) -> Column:
        """Micro-batches A m per iteration [layouts]."""
        passes: Column = self.count_flushes(layouts) * self.count_micro_batches(layouts)
        return passes

    def count_tokens(self, layouts: Layouts) -> Column:
        """Tokens u per micro-batch and PE [layouts]."""
        return layouts.micro * self.length / layouts.context


class Parameters(NamedTuple):
    """Parameters on a PE [layouts]: all but routed experts, and routed experts."""

    dense: Column
    experts: Column


class Held(NamedTuple):
    """Parameters on a PE: all, those in few bytes as fewer of them; and those that are trained."""

    stored: Parameters
    trained: Parameters


def count_weights(weights: Weights, layouts: Layouts, size: float = 0.0) -> Column:
    """Parameters of a layer on a PE [layouts]; PEs beyond its parts hold copies.

    size: bytes of a weight, of which a matrix in fewer bytes counts as fewer weights; 0: any.
    """
    tensor = layouts.etp if weights.is_routed else layouts.tensor
    # Experts have few biases, and are divided over their width.
    parts = np.minimum(tensor, weights.parts) if weights.parts else np.ones_like(tensor)
    biases = weights.biases / (parts if weights.by_columns else 1)
    share = weights.stored / size if weights.stored and size else 1.0
    matrix = share * weights.matrix / parts
    held: Column = (matrix + biases) / (layouts.expert if weights.is_routed else 1)
    return held


def count_blocks(net: Transformer, layouts: Layouts, training: Training) -> list[Held]:
    """Parameters of each kind of block on a PE [layouts], without embedding tables."""
    stored = [count_block(kind, layouts, training.recipe.weights) for kind in net.kinds]
    trained = [count_block(kind, layouts) for kind in net.trained.kinds] if net.is_tuned else stored
    return [*map(Held, stored, trained)]


def count_block(block: Block, layouts: Layouts, size: float = 0.0) -> Parameters:
    """Parameters of a block on a PE [layouts], without embedding tables. size: `count_weights`."""
    held: dict[bool, Column] = {False: np.zeros(1), True: np.zeros(1)}
    for weights in block.weights:
        counted = count_weights(weights, layouts, size)
        held[weights.is_routed] = held[weights.is_routed] + counted
    return Parameters(held[False], held[True])


def count_tensors(block: Block, layouts: Layouts) -> Parameters:
    """Matrices and vectors of biases of a block on a PE [layouts]."""
    dense = sum((w.matrix > 0) + (w.biases > 0) for w in block.weights if not w.is_routed)
    routed = sum(w.experts for w in block.weights if w.is_routed)
    return Parameters(np.full(1, float(dense)), routed / layouts.expert)


def count_tables(net: Transformer, layouts: Layouts, reads: Column, last: Column) -> Column:
    """Parameters of embedding tables on a PE [layouts].

    reads, last: whether a stage embeds tokens, and computes logits; with tied tables, one serves.
    """
    tables = np.where(reads & last & net.ties, 1, reads.astype(int) + last)
    held: Column = tables * pad_vocabulary(net, layouts) / layouts.tensor * net.hidden
    return held


def pad_vocabulary(net: Transformer, layouts: Layouts) -> Column:
    """V [layouts], padded to a multiple of 128 t."""
    # Megatron-LM, arguments.py: make-vocab-size-divisible-by, for the efficiency of tensor cores.
    unit: Column = 128 * layouts.tensor
    return unit * np.ceil(net.vocabulary / unit)
