"""Memory of layouts by part, of the fullest stage of each.

Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models": what a
block keeps. Rajbhandari et al. 2020, "ZeRO": shares of weights, gradients and states. In flight:
`kernels.layouts.schedules`. What is recomputed is there once, for one block; experts see the
average of tokens; what the backward pass reads of logits is there of one micro-batch.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from kernels.layouts.parameters import Parameters, count_blocks, count_ends, pad_vocabulary
from kernels.layouts.schedules import (
    SCHEDULES,
    count_in_flight,
    count_stage_blocks,
    find_ends,
)
from kernels.layouts.transformer import RECOMPUTE, Column, Layouts, Training, Transformer

PARTS = (
    *("weights", "gradients", "states", "gathered"),
    *("activations", "recomputed", "embedding", "logits", "reserved"),
)


class Tensor(NamedTuple):
    """What a block's backward pass reads: bytes a PE and micro-batch, what recomputes it (bits)."""

    bytes: Column
    dropped_by: int = 0


class Blocks(NamedTuple):
    """Of a block without experts, and of one with them: parameters on a PE, bytes [2, layouts]."""

    parameters: Parameters
    kept: Column
    dropped: Column

    def select(self, rows: Column) -> "Blocks":
        """Those of some layouts."""
        held = Parameters(*(each[:, rows] for each in self.parameters))
        return Blocks(held, self.kept[:, rows], self.dropped[:, rows])


def measure_memory(
    net: Transformer, layouts: Layouts, training: Training
) -> tuple[dict[str, Column], Column]:
    """Bytes of each part of PARTS [layouts] on the fullest stage, and its number [layouts]."""
    blocks = measure_blocks(net, layouts, training)
    parts = np.zeros((len(PARTS), len(layouts)))
    fullest = np.zeros(len(layouts), int)
    for stage in range(layouts.pipeline.max(initial=0)):
        rows = np.flatnonzero(layouts.pipeline > stage)
        found = measure_stage(net, layouts.select(rows), training, blocks.select(rows), stage)
        fuller = found.sum(axis=0) > parts[:, rows].sum(axis=0)
        parts[:, rows[fuller]] = found[:, fuller]
        fullest[rows[fuller]] = stage
    return dict(zip(PARTS, parts, strict=True)), fullest


def measure_blocks(net: Transformer, layouts: Layouts, training: Training) -> Blocks:
    """What blocks hold, keep and compute again."""
    sums = [_sum_tensors(net, layouts, training, has_experts) for has_experts in (False, True)]
    kept, dropped = map(np.stack, zip(*sums, strict=True))
    return Blocks(count_blocks(net, layouts), kept, dropped)


def _sum_tensors(
    net: Transformer, layouts: Layouts, training: Training, has_experts: bool
) -> tuple[Column, Column]:
    """Bytes that a block keeps of a micro-batch, and that it computes again [layouts]."""
    kept, dropped = np.zeros(len(layouts)), np.zeros(len(layouts))
    whole = RECOMPUTE["blocks"] | RECOMPUTE["full"]
    for number, tensor in enumerate(list_tensors(net, layouts, training, has_experts)):
        # A block's input stays, whatever is recomputed.
        bits = tensor.dropped_by | (whole if number else 0)
        again = (layouts.recompute & bits) > 0
        kept += np.where(again, 0, tensor.bytes)
        dropped += np.where(again, tensor.bytes, 0)
    return kept, dropped


def list_tensors(
    net: Transformer, layouts: Layouts, training: Training, has_experts: bool
) -> Iterator[Tensor]:
    """What a block's backward pass reads of a micro-batch: its input first."""
    list_mlp = list_experts if has_experts else list_dense
    for list_part in (list_attention, list_mlp):
        yield from list_norm(net, layouts, training)
        yield from list_part(net, layouts, training)


def list_norm(net: Transformer, layouts: Layouts, training: Training) -> Iterator[Tensor]:
    """Input and output of a norm."""
    u, h, recipe = training.count_tokens(layouts), net.hidden, training.recipe
    yield Tensor(u * recipe.item * h / layouts.sigma)
    yield Tensor(u * recipe.read * h / layouts.sigma, RECOMPUTE["layernorm"])


def list_attention(net: Transformer, layouts: Layouts, training: Training) -> Iterator[Tensor]:
    """Queries, keys and values, scores, the last matrix' input, the dropout's mask."""
    u, t, recipe = training.count_tokens(layouts), layouts.tensor, training.recipe
    out = net.heads * (net.latent.value if net.latent else net.head_size)
    if net.latent:
        yield from list_latent(net, layouts, training)
    else:
        keys = 2 * np.maximum(net.kv_heads, t) * net.head_size
        yield Tensor(u * recipe.item * (out + keys) / t)
    yield Tensor(u * recipe.read * out / t)
    if not training.fused_attention:
        # Softmax, and its dropout's mask and output: 5 a s / h of Korthikanti's equation 1.
        of_each = 2 * recipe.item + 1 if training.dropout else recipe.item
        yield Tensor(u * of_each * net.heads * training.length / t, RECOMPUTE["core_attn"])
    elif recipe.read < recipe.item:
        # The kernel's backward pass reads its output, the GEMM another copy.
        yield Tensor(u * recipe.item * out / t)
    yield Tensor(u * training.dropout * net.hidden / layouts.sigma)


def list_latent(net: Transformer, layouts: Layouts, training: Training) -> Iterator[Tensor]:
    """Latent vectors, and the queries, keys and values that are projected from them."""
    assert net.latent
    u, recipe, ranks = training.count_tokens(layouts), training.recipe, net.latent
    latents = ranks.query_rank + ranks.rank
    queries, out = net.heads * (ranks.content + ranks.rotary), net.heads * ranks.value
    up = RECOMPUTE["mla_up_proj"]
    yield Tensor(u * recipe.item * (latents + ranks.rotary) / layouts.sigma)
    yield Tensor(u * recipe.read * latents / layouts.sigma, up)
    yield Tensor(u * recipe.item * (2 * queries + out) / layouts.tensor, up)


def list_dense(net: Transformer, layouts: Layouts, training: Training) -> Iterator[Tensor]:
    """What an MLP keeps, and the dropout's mask behind it."""
    mlp = RECOMPUTE["mlp"]
    yield from _list_wide(net, layouts, training, net.ffn, mlp, mlp)
    yield Tensor(
        training.count_tokens(layouts) * training.dropout * net.hidden / layouts.sigma, mlp
    )


def _list_wide(
    net: Transformer, layouts: Layouts, training: Training, width: int, wide: int, last: int
) -> Iterator[Tensor]:
    """Outputs of the first matrices, and the last one's input; wide, last: what recomputes them."""
    inner, recipe = training.count_tokens(layouts) * width / layouts.tensor, training.recipe
    yield Tensor(inner * (net.matrices - 1) * recipe.item, wide)
    yield Tensor(inner * recipe.read, last)


def list_experts(net: Transformer, layouts: Layouts, training: Training) -> Iterator[Tensor]:
    """Router, dispatched tokens, routed and shared experts, combined tokens, dropout's mask."""
    u, h, k, recipe = training.count_tokens(layouts), net.hidden, net.top_k, training.recipe
    moe = RECOMPUTE["moe"]
    wide = partial(_list_wide, net, layouts, training)
    yield Tensor(u * 4 * net.experts / layouts.sigma, moe)
    yield Tensor(u * recipe.read * k * h, moe)
    yield from wide(k * net.expert_ffn, moe, moe | RECOMPUTE["moe_act"])
    yield Tensor(u * recipe.item * k * h / layouts.sigma, moe)
    shared = moe | RECOMPUTE["shared_experts"]
    yield from wide(net.shared_ffn, shared, shared)
    yield Tensor(u * training.dropout * h / layouts.sigma, RECOMPUTE["mlp"])


def measure_stage(
    net: Transformer, layouts: Layouts, training: Training, blocks: Blocks, stage: int
) -> Column:
    """Bytes of each part of PARTS on a PE of a stage [parts, layouts]."""
    counts = count_stage_blocks(net, layouts, training, stage)
    first, last = find_ends(layouts, training, stage)
    flying = count_in_flight(layouts, training, stage)
    held = Parameters(*((counts * each).sum(axis=0) for each in blocks.parameters))
    held = held._replace(dense=held.dense + count_ends(net, layouts, first, last))
    late = SCHEDULES[training.schedule].is_late
    of_logits = training.count_micro_batches(layouts) if late else 1
    parts = [
        *share_states(held, layouts, training),
        measure_gathered(counts, layouts, training, blocks.parameters),
        *measure_activations(counts, layouts, blocks, flying),
        first * flying * measure_embedding(net, layouts, training),
        last * of_logits * measure_logits(net, layouts, training),
        np.full(len(layouts), training.reserved),
    ]
    return np.stack(parts)


def share_states(held: Parameters, layouts: Layouts, training: Training) -> list[Column]:
    """Bytes of weights, gradients and states, shared from ZeRO stage 3, 2 and 1 on."""
    whole = held.dense + held.experts
    shared = held.dense / layouts.shards + held.experts / np.maximum(layouts.expert_shards, 1)
    sizes = zip((3, 2, 1), training.recipe[:3], strict=True)
    return [size * np.where(layouts.zero >= least, shared, whole) for least, size in sizes]


def measure_gathered(
    counts: Column, layouts: Layouts, training: Training, blocks: Parameters
) -> Column:
    """Bytes of two of the largest blocks' weights, where ZeRO's third stage gathers them."""
    largest = np.where(counts > 0, blocks.dense + blocks.experts, 0).max(axis=0)
    return np.where(layouts.zero >= 3, 2 * largest * training.recipe.weights, 0)


def measure_activations(
    counts: Column, layouts: Layouts, blocks: Blocks, flying: Column
) -> tuple[Column, Column]:
    """Bytes that blocks keep of all micro-batches in flight, and of what is computed again.

    Full recomputation keeps every r-th block's input, and has r blocks at a time, r the square root
    of their number (Chen et al. 2016).
    """
    number, there = counts.sum(axis=0), counts > 0
    again = np.where(there, blocks.dropped, 0).max(axis=0)
    largest = np.where(there, blocks.kept, 0).max(axis=0)
    r = np.maximum(np.ceil(np.sqrt(number)), 1)
    full = (layouts.recompute & RECOMPUTE["full"]) > 0
    fewer = np.where(full, np.ceil(number / r) / np.maximum(number, 1), 1)
    kept = (counts * blocks.kept).sum(axis=0) * fewer * flying
    return kept, np.where(full, r * (again + largest) - largest, again)


def measure_embedding(net: Transformer, layouts: Layouts, training: Training) -> Column:
    """Bytes of a micro-batch's token numbers and of the embedding's dropout mask."""
    mask = training.dropout * net.hidden / layouts.sigma
    return training.count_tokens(layouts) * (8 + mask)


def measure_logits(net: Transformer, layouts: Layouts, training: Training) -> Column:
    """Bytes of a micro-batch's inputs of final norm and output layer, and of fp32 logits."""
    of_each = 0 if training.fused_loss else 4 * pad_vocabulary(net, layouts) / layouts.tensor
    inputs = 2 * training.recipe.item * net.hidden / layouts.sigma
    return training.count_tokens(layouts) * (inputs + of_each)
