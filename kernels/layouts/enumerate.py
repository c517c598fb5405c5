"""Candidate layouts: every product of degrees with every setting, and what forbids each.

Rules of Megatron-LM (arguments.py, parallel_state.py) and of the papers named at each.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import gcd, isqrt

import numpy as np

from kernels.layouts.columns import Column, find_any
from kernels.layouts.memory import find_idle_modules
from kernels.layouts.schedules import INTERLEAVES
from kernels.layouts.transformer import RECOMPUTE, Layouts, Training, Transformer

# What chunks are tried where nobody says.
CHUNKS = (1, 2, 4)
DEGREES = ("tensor", "context", "pipeline")


def enumerate_layouts(
    pes: int,
    expert: Iterable[int] = (1,),
    chunks: Iterable[int] = (1,),
    micro: Iterable[int] = (1,),
    recompute: Iterable[int] = (0,),
    zero: Iterable[int] = (0,),
    sequence: Iterable[int] = (0, 1),
    expert_tensor: Iterable[int] = (0,),
    group: Iterable[int] = (0,),
    shard: Iterable[int] = (0,),
    **degrees: Iterable[int],
) -> Layouts:
    """All candidates of so many PEs: tensor x context x pipeline x data, with every setting.

    degrees: those of DEGREES that may have some values alone.
    """
    divided = np.array([*factorise(pes, 4)])
    for column, name in enumerate(DEGREES):
        if name in degrees:
            divided = divided[np.isin(divided[:, column], [*degrees[name]])]
    lists = (expert, chunks, micro, recompute, zero, sequence, expert_tensor, group, shard)
    settings = np.array([*product(*lists)])
    rows = (np.repeat(divided, len(settings), axis=0), np.tile(settings, (len(divided), 1)))
    return Layouts.from_rows(np.hstack(rows))


def list_candidates(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> Layouts:
    """The layouts of so many PEs that make sense, none of which is another one again.

    most: sequences that replicas share at most. lists: the values of some columns, in the place of
    all that are usual.
    """
    usual: Mapping[str, Sequence[int]] = {
        "expert": list_divisors(gcd(pes, *(net.experts or (1,)))),
        "chunks": CHUNKS,
        "micro": [1 << bit for bit in range(most.bit_length())],
        "recompute": (0, RECOMPUTE["blocks"]),
        "zero": range(4),
        "expert_tensor": (0, 1) if net.experts else (0,),
        **lists,
    }
    layouts = enumerate_layouts(pes, **usual)
    # Nobody asks for a larger micro-batch than a replica's part of the batch, nor for more parts of
    # experts than there are ranks.
    sensible = layouts.micro * layouts.data <= most
    sensible &= layouts.tensor * layouts.shards % (layouts.etp * layouts.expert) == 0
    # One chunk a stage has no groups.
    layouts = replace(layouts, group=np.where(layouts.chunks > 1, layouts.group, 0))
    stated = {name for name, values in lists.items() if len(values) == 1}
    return layouts.select(sensible & ~find_repeated(layouts, stated))


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


def find_repeated(layouts: Layouts, stated: Collection[str] = ()) -> Column:
    """Whether a layout is another one again [layouts]: a setting has nothing to divide.

    stated: columns of one value, which repeat nothing.
    """
    repeats = {
        "sequence": (layouts.sequence > 0) & (layouts.tensor == 1),
        "zero": (layouts.zero > 0) & (layouts.shards == 1),
        "chunks": (layouts.chunks > 1) & (layouts.pipeline == 1),
        "expert_tensor": layouts.expert_tensor == layouts.tensor,
        "group": (layouts.group > 0)
        & ((layouts.chunks == 1) | (layouts.group == layouts.pipeline)),
        "shard": (layouts.shard > 0)
        & ((layouts.zero == 0) | (layouts.shard == layouts.data * layouts.context)),
    }
    return find_any(mask for name, mask in repeats.items() if name not in stated)


def find_reasons(net: Transformer, layouts: Layouts, training: Training) -> dict[str, Column]:
    """What forbids layouts, whatever the memory: by name, whether it is so [layouts]."""
    t, c, e, p = layouts.tensor, layouts.context, layouts.expert, layouts.pipeline
    s = training.length
    by_heads = training.context_by == "all_to_all"
    # A causal ring gives each rank a late part of the sequence with an early one.
    parts = np.where(c > 1, 2 * c, 1) if not by_heads else c
    return {
        "heads": _leave(net.heads, t),
        "kv_heads": find_any(np.maximum(n, t) % np.minimum(n, t) > 0 for n in net.kv_heads),
        "hidden": net.hidden % t > 0,
        "ffn": _leave(net.ffn, t) | _leave(net.expert_ffn, layouts.etp),
        "batch": training.find_batch(layouts) % (layouts.data * layouts.micro) > 0,
        "interleaving": (layouts.chunks > 1) & _cannot_interleave(layouts, training),
        "sequence": s % parts > 0,
        "context_heads": by_heads & (c > 1) & _leave((*net.heads, *net.kv_heads), c * t),
        "sequence_parallel": (layouts.sequence > 0) & (s // c % t > 0),
        "experts": _leave(net.experts, e) if net.experts else e > 1,
        "folding": t * c * layouts.data % (layouts.etp * e) > 0,
        "experts_need_sequence": (t > 1) & (e > 1) & (layouts.sequence == 0),
        "more_stages_than_blocks": p * layouts.chunks > net.blocks,
        "shard": c * layouts.data % layouts.shards > 0,
    }


def _leave(numbers: Iterable[int], degree: Column) -> Column:
    """Whether a degree does not divide all of the numbers [layouts]."""
    return find_any(number % degree > 0 for number in numbers)


def _cannot_interleave(layouts: Layouts, training: Training) -> Column:
    """Whether micro-batches are no multiple of N, or N is less than the stages [layouts].

    Megatron-LM, model_parallel_config.py: microbatch_group_size_per_vp_stage.
    """
    rest = training.count_micro_batches(layouts) % layouts.passes
    unfit = (layouts.passes < layouts.pipeline) | ((rest > 0) & (rest < layouts.pipeline))
    return np.asarray((layouts.pipeline == 1) | unfit | (training.schedule != INTERLEAVES))


def find_marks(
    net: Transformer, layouts: Layouts, training: Training, pes_per_node: int
) -> dict[str, Column]:
    """What is odd about layouts and forbids none: by name, whether it is so [layouts]."""
    p, m = layouts.pipeline, training.count_micro_batches(layouts)
    return {
        "kv_replicated": layouts.tensor > min(net.kv_heads),
        "uneven_stages": net.blocks % (p * layouts.chunks) > 0,
        "starved": m < p,
        "zero_with_pipeline": (p > 1) & (layouts.zero > 1),
        "beyond_node": layouts.tensor > pes_per_node,
        "idle_recompute": (layouts.recompute & find_idle_modules(net, training)) > 0,
        "longer": np.full(p.shape, 0 < net.longest < training.length),
    }
