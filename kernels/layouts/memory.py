"""Memory of layouts by part, of the fullest stage of each.

Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models": what a
block keeps. Rajbhandari et al. 2020, "ZeRO": shares of weights, gradients and states. In flight:
`kernels.layouts.schedules`. What is recomputed is there once, for one block; experts see the
average of tokens; what the backward pass reads of logits is there of one micro-batch.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kernels.layouts.parameters import Parameters, count_block, count_tables
from kernels.layouts.schedules import (
    SCHEDULES,
    count_in_flight,
    count_stage_blocks,
    find_ends,
)
from kernels.layouts.transformer import RECOMPUTE, Column, Layouts, Tensor, Training, Transformer

PARTS = (
    *("weights", "gradients", "states", "gathered"),
    *("activations", "recomputed", "embedding", "logits", "reserved"),
)


class Blocks(NamedTuple):
    """Of each kind of block: parameters on a PE, and bytes of a micro-batch [kinds, layouts]."""

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
    """What blocks of each kind hold, keep and compute again."""
    held = [count_block(block, layouts) for block in net.kinds]
    sums = [sum_tensors(block.tensors, layouts, training) for block in net.kinds]
    kept, dropped = map(np.stack, zip(*sums, strict=True))
    return Blocks(Parameters(*map(np.stack, zip(*held, strict=True))), kept, dropped)


def sum_tensors(
    tensors: Iterable[Tensor], layouts: Layouts, training: Training
) -> tuple[Column, Column]:
    """Bytes that are kept of a micro-batch, and that are computed again [layouts]."""
    kept, dropped = np.zeros(len(layouts)), np.zeros(len(layouts))
    for tensor in tensors:
        again = (layouts.recompute & tensor.modules) > 0
        size = measure_tensor(tensor, layouts, training)
        kept += np.where(again, 0, size)
        dropped += np.where(again, size, 0)
    return kept, dropped


def find_idle_modules(net: Transformer, training: Training) -> int:
    """Bits of the modules of which no block keeps anything that recomputing it would drop."""
    busy = 0
    for block in net.kinds:
        for tensor in block.tensors:
            busy |= tensor.modules * (tensor.items * SIZES[tensor.size](training) > 0)
    return sum(RECOMPUTE.values()) & ~busy


def measure_tensor(tensor: Tensor, layouts: Layouts, training: Training) -> Column:
    """Bytes of a tensor of a micro-batch on a PE [layouts]."""
    items: Column | float = tensor.items
    if tensor.size == "logits":  # padded, and there of one part of the tokens at a time
        padding = 128 * layouts.tensor
        items = padding * np.ceil(tensor.items / padding) / training.loss_parts
    size: Column = SIZES[tensor.size](training) * items * training.count_tokens(layouts)
    return size / DIVISORS[tensor.divided](layouts, tensor.parts)


# Bytes of an item of a tensor: of most; of a product's input; of such a one of which a fused kernel
# reads a copy of its own; of scores, softmax and its dropout's mask and output (5 a s / h of
# Korthikanti's equation 1), of all positions; in single precision, such as a router's; logits;
# dropout's mask; a word's number.
SIZES: Mapping[str, Callable[[Training], float]] = {
    "item": lambda training: training.recipe.item,
    "read": lambda training: training.recipe.read,
    "context": lambda training: (
        training.recipe.read
        + training.recipe.item
        * (training.fused_attention and training.recipe.read < training.recipe.item)
    ),
    "scores": lambda training: (
        training.length
        * (not training.fused_attention)
        * (2 * training.recipe.item + 1 if training.dropout else training.recipe.item)
    ),
    "single": lambda training: 4,
    "logits": lambda training: training.logit_bytes,
    "mask": lambda training: int(training.dropout),
    "number": lambda training: 8,
}
# Parts of a tensor: over tensor in so many at most; where sequence parallelism divides it; of
# tokens that went to an expert, of which a PE has etp/t; nothing.
DIVISORS: Mapping[str, Callable[[Layouts, int], Column | float]] = {
    "tensor": lambda layouts, parts: np.minimum(layouts.tensor, parts),
    "sequence": lambda layouts, parts: layouts.sigma,
    "dispatched": lambda layouts, parts: layouts.tensor / layouts.etp,
    "whole": lambda layouts, parts: 1,
}


def measure_stage(
    net: Transformer, layouts: Layouts, training: Training, blocks: Blocks, stage: int
) -> Column:
    """Bytes of each part of PARTS on a PE of a stage [parts, layouts]."""
    counts = count_stage_blocks(net, layouts, training, stage)
    first, last = find_ends(layouts, training, stage)
    flying = count_in_flight(layouts, training, stage)
    late = SCHEDULES[training.schedule].is_late
    scored = training.count_micro_batches(layouts) if late else 1
    front, back = (sum_tensors(end.tensors, layouts, training)[0] for end in (net.front, net.back))
    kept, again = measure_activations(counts, layouts, blocks, flying)
    if net.memory:
        reads = find_blocks(counts, [block.reads_memory for block in net.kinds])
        kept = kept + reads * flying * measure_tensor(net.memory, layouts, training)
    held = hold_parameters(net, layouts, blocks, counts, first, last)
    parts = [
        *share_states(held, layouts, training),
        measure_gathered(counts, layouts, training, blocks.parameters),
        *(kept, again, first * flying * front, last * scored * back),
        np.full(len(layouts), training.reserved),
    ]
    return np.stack(parts)


def hold_parameters(
    net: Transformer, layouts: Layouts, blocks: Blocks, counts: Column, first: Column, last: Column
) -> Parameters:
    """Parameters on a PE of a stage [layouts], with the network's ends where it has them."""
    held = Parameters(*((counts * each).sum(axis=0) for each in blocks.parameters))
    front, back = (count_block(end, layouts).dense for end in (net.front, net.back))
    inside = find_blocks(counts, [block.looks_up for block in net.kinds])
    reads = first & net.front.looks_up | inside
    tables = count_tables(net, layouts, reads, last & net.back.looks_up)
    return held._replace(dense=held.dense + tables + first * front + last * back)


def find_blocks(counts: Column, kinds: Sequence[bool]) -> Column:
    """Whether a stage has blocks of these kinds [layouts]."""
    found: Column = (counts * np.array(kinds)[:, None]).any(axis=0)
    return found


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
