"""Layers of a network with blocks of attention, how it trains, and its parameters on a PE."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from paradl.kernels.columns import Column
from paradl.kernels.names.recipes import Recipe
from paradl.kernels.work.layouts import Layouts

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
    SIZES, and divided: which PEs share it, a key of DIVISORS, in `kernels.work.block_memory`.
    parts: most parts over tensor. modules: RECOMPUTE bits, any of which recomputes it instead of
    keeping it. window: of scores, the positions of a query; 0: all.
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
    of ZeRO.
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


def count_weights(weights: Weights, layouts: Layouts) -> Column:
    """Parameters of a layer on a PE [layouts]; PEs beyond its parts hold copies."""
    tensor = layouts.etp if weights.is_routed else layouts.tensor
    # Experts have few biases, and are divided over their width.
    parts = np.minimum(tensor, weights.parts) if weights.parts else np.ones_like(tensor)
    biases = weights.biases / (parts if weights.by_columns else 1)
    held: Column = (weights.matrix / parts + biases) / (layouts.expert if weights.is_routed else 1)
    return held


def count_block(block: Block, layouts: Layouts) -> Parameters:
    """Parameters of a block on a PE [layouts], without embedding tables."""
    held: dict[bool, Column] = {False: np.zeros(1), True: np.zeros(1)}
    for weights in block.weights:
        held[weights.is_routed] = held[weights.is_routed] + count_weights(weights, layouts)
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
