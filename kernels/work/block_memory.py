"""Memory of layouts by part, on the fullest pipeline stage of each.

Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models":
activations per block. Rajbhandari et al. 2020, "ZeRO": shares of weights, gradients and states.
Micro-batches in flight: `kernels.work.schedules`. Recomputed activations are held for one block
at a time, logits for one micro-batch; every expert gets the average number of tokens.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from paradl.kernels.columns import (
    Column,
    add,
    find_any,
    find_largest,
    keep_largest,
    sum_kinds,
)
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import SCHEDULES, Stage, count_in_flight, list_stages
from paradl.kernels.work.transformer import (
    Held,
    Parameters,
    Tensor,
    Training,
    Transformer,
    count_block,
    count_blocks,
    count_keys,
    count_tables,
)

PARTS = (
    *("weights", "gradients", "states", "gathered", "unreduced"),
    *("activations", "recomputed", "embedding", "logits", "reserved"),
)


class Blocks(NamedTuple):
    """Per kind of block: parameters on a PE; bytes kept and dropped per micro-batch [layouts]."""

    parameters: list[Held]
    kept: list[Column]
    dropped: list[Column]


def measure_memory(
    net: Transformer, layouts: Layouts, training: Training
) -> tuple[dict[str, Column], Column]:
    """Bytes by PARTS on the fullest stage [layouts], and the index of that stage [layouts]."""
    stages = list_stages(net, layouts, training)
    measured = measure_stages(net, layouts, training, stages)
    answers = (
        ([*parts, stage.number], size)
        for stage, (parts, size) in zip(stages, measured, strict=True)
    )
    *parts, fullest = (np.broadcast_to(part, layouts.shape) for part in keep_largest(answers))
    return dict(zip(PARTS, parts, strict=True)), fullest


def measure_stages(
    net: Transformer, layouts: Layouts, training: Training, stages: Iterable[Stage]
) -> Iterator[tuple[list[Column], Column]]:
    """Bytes on a PE of each stage, by PARTS and in total [layouts]."""
    blocks = measure_blocks(net, layouts, training)
    ends = [sum_tensors(end.tensors, layouts, training)[0] for end in (net.front, net.back)]
    for stage in stages:
        parts = measure_stage(net, layouts, training, blocks, ends, stage)
        yield parts, add(parts)


def measure_blocks(net: Transformer, layouts: Layouts, training: Training) -> Blocks:
    """Parameters, kept and recomputed bytes of each kind of block."""
    held = count_blocks(net, layouts, training)
    sums = [sum_tensors(block.tensors, layouts, training) for block in net.kinds]
    return Blocks(held, *map(list, zip(*sums, strict=True)))


def sum_tensors(
    tensors: Iterable[Tensor], layouts: Layouts, training: Training
) -> tuple[Column, Column]:
    """Bytes per micro-batch that are kept, and that are recomputed [layouts]."""
    kept, dropped = np.zeros(1), np.zeros(1)
    for tensor in tensors:
        if not tensor.kept:
            continue
        again = (layouts.recompute & tensor.modules) > 0
        size = measure_tensor(tensor, layouts, training)
        kept = kept + np.where(again, 0, size)
        dropped = dropped + np.where(again, size, 0)
    return kept, dropped


def find_idle_modules(net: Transformer, training: Training) -> int:
    """RECOMPUTE bits of the modules whose recomputation would save no memory."""
    busy = 0
    for block in net.kinds:
        for tensor in block.tensors:
            size = tensor.kept * tensor.items * SIZES[tensor.size](training)
            busy |= tensor.modules * (size > 0)
    return sum(RECOMPUTE.values()) & ~busy


def measure_tensor(tensor: Tensor, layouts: Layouts, training: Training) -> Column:
    """Bytes of a tensor per micro-batch on a PE [layouts]."""
    items: Column | float = tensor.items
    if tensor.size == "logits":  # padded; one part of the tokens at a time
        padding = 128 * layouts.tensor
        items = padding * np.ceil(tensor.items / padding) / training.loss_parts
    if tensor.size == "scores":
        items = tensor.items * count_keys(training.length, tensor.window)
    size: Column = SIZES[tensor.size](training) * items * training.count_tokens(layouts)
    return size / DIVISORS[tensor.divided](layouts, tensor.parts)


# Bytes per item of a tensor.
SIZES: Mapping[str, Callable[[Training], float]] = {
    "item": lambda training: training.recipe.item,
    "read": lambda training: training.recipe.read,  # a product's input
    # The output of attention; the backward pass of a fused kernel reads a 16-bit copy as well.
    "context": lambda training: (
        training.recipe.read
        + training.recipe.item
        * (training.fused_attention and training.recipe.read < training.recipe.item)
    ),
    # Per score, softmax and its dropout's mask and output: 5 a s / h of Korthikanti's equation 1.
    "scores": lambda training: (
        (not training.fused_attention)
        * (2 * training.recipe.item + 1 if training.dropout else training.recipe.item)
    ),
    "single": lambda training: 4,  # single precision, such as a router's
    "logits": lambda training: training.logit_bytes,
    "mask": lambda training: int(training.dropout),
    "number": lambda training: 8,  # token ids are int64
}
# Ranks that share a tensor.
DIVISORS: Mapping[str, Callable[[Layouts, int], Column | float]] = {
    # With more PEs than KV heads, some PEs hold copies of a head.
    "tensor": lambda layouts, parts: np.minimum(layouts.tensor, parts),
    "sequence": lambda layouts, parts: layouts.sigma,
    # Tokens sent to an expert: all etp PEs of the expert hold them.
    "dispatched": lambda layouts, parts: layouts.tensor / layouts.etp,
    "whole": lambda layouts, parts: 1,
}


def measure_stage(
    net: Transformer,
    layouts: Layouts,
    training: Training,
    blocks: Blocks,
    ends: Sequence[Column],
    stage: Stage,
) -> list[Column]:
    """Bytes by PARTS on a PE of a stage. ends: bytes kept by front and back."""
    flying = count_in_flight(layouts, training, stage.number)
    # Logits are freed after each micro-batch, unless all forward passes come first.
    late = SCHEDULES[training.schedule].is_late & (layouts.pipeline > 1)
    scored = np.where(late, training.count_micro_batches(layouts), 1)
    front, back = ends
    kept, again = measure_activations(stage.counts, layouts, blocks, flying)
    if not training.keeps_activations:  # of one block, and of another one on its way
        kept = np.minimum(kept, 2 * find_largest(stage.counts, blocks.kept))
    if net.memory:  # one copy for all blocks that read it
        reads = find_blocks(stage.counts, [block.reads_memory for block in net.kinds])
        kept = kept + reads * flying * measure_tensor(net.memory, layouts, training)
    held = hold_parameters(net, layouts, blocks.parameters, stage)
    return [
        *share_states(held, layouts, training),
        *hold_unsharded(held, layouts, training, blocks.parameters, stage),
        *(kept, again, stage.first * flying * front, stage.last * scored * back),
        np.asarray(training.reserved),
    ]


def hold_parameters(
    net: Transformer, layouts: Layouts, blocks: Sequence[Held], stage: Stage
) -> Held:
    """Parameters on a PE of a stage [layouts], with embedding and output layer on its stages."""
    stored, trained = zip(*blocks, strict=True)
    whole = _hold_part(net, layouts, stored, stage)
    return Held(whole, _hold_part(net.trained, layouts, trained, stage) if net.is_tuned else whole)


def _hold_part(
    net: Transformer, layouts: Layouts, blocks: Sequence[Parameters], stage: Stage
) -> Parameters:
    counts, first, last = stage.counts, stage.first, stage.last
    dense, experts = (sum_kinds(counts, numbers) for numbers in zip(*blocks, strict=True))
    front, back = (count_block(end, layouts).dense for end in (net.front, net.back))
    # The first stage of a decoder has its own copy of the embedding (Megatron-LM's T5).
    inside = find_blocks(counts, [block.looks_up for block in net.kinds])
    reads = first & net.front.looks_up | inside
    tables = count_tables(net, layouts, reads, last & net.back.looks_up)
    return Parameters(dense + tables + first * front + last * back, experts)


def share_states(held: Held, layouts: Layouts, training: Training) -> list[Column]:
    """Compute bytes of weights, gradients and states, sharded from ZeRO stage 3, 2 and 1 on."""
    (stored, trained), shards = held, (layouts.shards, np.maximum(layouts.expert_shards, 1))
    weights, gradients, states, *_ = training.recipe
    states = states * training.keeps_states
    parts = ((3, weights, stored), (2, gradients, trained), (1, states, trained))
    return [
        size * np.where(layouts.zero >= least, add(map(np.divide, part, shards)), add(part))
        for least, size, part in parts
    ]


def _list_divided(layouts: Layouts, blocks: Iterable[Parameters], least: int) -> Iterator[Column]:
    """Yield the parameters of each block that ZeRO divides from stage `least` on [layouts]."""
    # Not what one rank holds alone.
    dense, experts = (
        (n > 1) & (layouts.zero >= least) for n in (layouts.shards, layouts.expert_shards)
    )
    return (dense * held.dense + experts * held.experts for held in blocks)


def hold_unsharded(
    held: Held, layouts: Layouts, training: Training, blocks: Sequence[Held], stage: Stage
) -> Iterator[Column]:
    """Yield bytes of weights that ZeRO 3 gathers, and of gradients that ZeRO 2 and 3 reduce next.

    Weights of two messages: while one is read, the next one is gathered; gradients of one.
    """
    unsharded, recipe = training.unsharded, training.recipe
    all_of_stage = unsharded.with_stages & (layouts.pipeline > 1)
    stored, trained = zip(held, *blocks, strict=True)
    kinds = (
        (3, 2, unsharded.weights, recipe.weights, stored),
        (2, 1, unsharded.gradients, recipe.gradients, trained),
    )
    for least, number, usual, size, parts in kinds:
        whole, *of_blocks = _list_divided(layouts, parts, least)
        largest = find_largest(stage.counts, of_blocks)
        more = np.minimum(whole, np.where(all_of_stage, np.inf, usual))
        yield size * np.maximum(number * unsharded.share * largest, more)


def find_blocks(counts: Column, kinds: Sequence[bool]) -> Column:
    """Whether a stage has blocks of these kinds [layouts]."""
    return find_any((n > 0) & has for n, has in zip(counts, kinds, strict=True))


def measure_activations(
    counts: Column, layouts: Layouts, blocks: Blocks, flying: Column
) -> tuple[Column, Column]:
    """Bytes that blocks keep of all micro-batches in flight, and of what is computed again.

    Full recomputation keeps every r-th block's input, and has r blocks at a time, r the square root
    of their number (Chen et al. 2016).
    """
    number = counts.sum(axis=0)
    again, largest = find_largest(counts, blocks.dropped), find_largest(counts, blocks.kept)
    # Of a stage's own blocks; 1 of stages that a layout does not have.
    r = np.maximum(np.ceil(np.sqrt(number)), 1)
    full = (layouts.recompute & RECOMPUTE["full"]) > 0
    fewer = np.where(full, np.ceil(number / r) / np.maximum(number, 1), 1)
    kept = sum_kinds(counts, blocks.kept) * fewer * flying
    return kept, np.where(full, r * (again + largest) - largest, again)


def count_updated(held: Parameters, layouts: Layouts) -> Column:
    """Count parameters that the optimizer of a rank updates."""
    shards = (np.where(layouts.zero > 0, n, 1) for n in (layouts.shards, layouts.expert_shards))
    # From stage 1 on, a rank updates the parameters whose states it holds.
    return add(number / n for number, n in zip(held, shards, strict=True))
