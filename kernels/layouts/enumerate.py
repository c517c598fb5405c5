"""Candidate layouts: every product of degrees with every setting, and what forbids each.

Rules of Megatron-LM (arguments.py, parallel_state.py) and of the papers named at each.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from math import isqrt

import numpy as np

from kernels.layouts.schedules import INTERLEAVES
from kernels.layouts.transformer import Column, Layouts, Training, Transformer


def enumerate_layouts(
    pes: int,
    expert: Iterable[int] = (1,),
    chunks: Iterable[int] = (1,),
    micro: Iterable[int] = (1,),
    recompute: Iterable[int] = (0,),
    zero: Iterable[int] = (0,),
    sequence: Iterable[int] = (0, 1),
) -> Layouts:
    """All candidates of so many PEs: tensor x context x pipeline x data, with every setting."""
    degrees = np.array([*factorise(pes, 4)])
    settings = np.array([*product(expert, chunks, micro, recompute, zero, sequence)])
    rows = (np.repeat(degrees, len(settings), axis=0), np.tile(settings, (len(degrees), 1)))
    return Layouts.from_rows(np.hstack(rows))


def factorise(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ordered products of so many degrees."""
    if parts == 1:
        yield (number,)
        return
    for degree in list_divisors(number):
        for rest in factorise(number // degree, parts - 1):
            yield (degree, *rest)


def list_divisors(number: int) -> list[int]:
    """All divisors, in order."""
    small = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def find_repeated(layouts: Layouts) -> Column:
    """Whether a layout is another one again [layouts]: a setting has nothing to divide."""
    repeats = (
        (layouts.sequence > 0) & (layouts.tensor == 1),
        (layouts.zero > 0) & (layouts.shards == 1),
        (layouts.chunks > 1) & (layouts.pipeline == 1),
    )
    return np.asarray(np.any(repeats, axis=0))


def find_reasons(net: Transformer, layouts: Layouts, training: Training) -> dict[str, Column]:
    """What forbids layouts, whatever the memory: by name, whether it is so [layouts]."""
    t, c, e, p, v = (
        *(layouts.tensor, layouts.context, layouts.expert),
        *(layouts.pipeline, layouts.chunks),
    )
    a, kv, s = net.heads, net.kv_heads, training.length
    m = training.count_micro_batches(layouts)
    by_heads = training.context_by == "all_to_all"
    # A causal ring gives each rank a late part of the sequence with an early one.
    parts = np.where(c > 1, 2 * c, 1) if not by_heads else c
    return {
        "heads": a % t > 0,
        "kv_heads": np.maximum(kv, t) % np.minimum(kv, t) > 0,
        "hidden": net.hidden % t > 0,
        "ffn": (net.ffn % t > 0) | (net.shared_ffn % t > 0) | (net.expert_ffn % t > 0),
        "batch": training.batch % (layouts.data * layouts.micro) > 0,
        "interleaving": (v > 1) & ((p == 1) | (m % p > 0) | (training.schedule != INTERLEAVES)),
        "sequence": s % parts > 0,
        "context_heads": by_heads & (c > 1) & ((a % (c * t) > 0) | (kv % (c * t) > 0)),
        "sequence_parallel": (layouts.sequence > 0) & (s // c % t > 0),
        "experts": (net.experts % e > 0) if net.experts else e > 1,
        "folding": layouts.shards % e > 0,
        "experts_need_sequence": (t > 1) & (e > 1) & (layouts.sequence == 0),
        "more_stages_than_blocks": p * v > net.blocks,
    }


def find_marks(
    net: Transformer, layouts: Layouts, training: Training, pes_per_node: int
) -> dict[str, Column]:
    """What is odd about layouts and forbids none: by name, whether it is so [layouts]."""
    p, m = layouts.pipeline, training.count_micro_batches(layouts)
    return {
        "kv_replicated": layouts.tensor > net.kv_heads,
        "uneven_stages": net.blocks % (p * layouts.chunks) > 0,
        "starved": m < p,
        "zero_with_pipeline": (p > 1) & (layouts.zero > 1),
        "beyond_node": layouts.tensor > pes_per_node,
        "longer": np.full(len(layouts), 0 < net.longest < training.length),
    }
