"""Candidate layouts: every product of degrees with every setting, and what forbids each.

Rules of Megatron-LM (arguments.py, parallel_state.py) and of the papers named at each.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, isqrt, prod
from typing import Self

import numpy as np

from kernels.layouts.columns import Column, find_any
from kernels.layouts.memory import find_idle_modules
from kernels.layouts.schedules import INTERLEAVES
from kernels.layouts.transformer import RECOMPUTE, Layouts, Training, Transformer

# What chunks are tried where nobody says.
CHUNKS = (1, 2, 4)
DEGREES = ("tensor", "context", "pipeline")
# Values of what a product is not given.
DEFAULTS: Mapping[str, Sequence[int]] = {
    **{"chunks": (1,), "micro": (1,), "recompute": (0,), "zero": (0,), "sequence": (0, 1)},
    **{"expert": (1,), "expert_tensor": (0,), "group": (0,), "shard": (0,)},
}


# Settings that have an axis of their own in a product: few formulas read these. All others, and
# degrees, share the last axis. Rules bind them to each other, so that much of it falls away, and it
# is long, as inner loops should be.
SETTINGS = ("zero", "recompute", "expert_tensor", "group", "shard")
SHARED = ("degrees", "chunks", "sequence", "expert", "micro")


@dataclass(frozen=True)
class LayoutProduct:
    """Layouts to choose from: a product of settings, or a list.

    sizes: how many values each of SHARED has. most: sequences that replicas share at most; None:
    all layouts are candidates. stated: settings of one value, which repeat nothing.
    """

    layouts: Layouts
    sizes: tuple[int, ...]
    most: int | None = None
    stated: frozenset[str] = frozenset()

    @classmethod
    def from_list(cls, layouts: Layouts) -> Self:
        """The space of the layouts of a list."""
        return cls(layouts, (len(layouts), 1, 1, 1, 1))

    @property
    def is_product(self) -> bool:
        """True if it has an axis for each setting."""
        return self.most is not None

    def find_candidates(self, layouts: Layouts) -> Column:
        """Which of some layouts make sense, and are none of the others again."""
        if self.most is None:  # a list
            return np.ones(layouts.shape, bool)
        # Nobody asks for a larger micro-batch than a replica's part of the batch, nor for more
        # parts of experts than there are ranks.
        sensible = layouts.micro * layouts.data <= self.most
        ranks = layouts.tensor * layouts.shards
        sensible = sensible & (ranks % (layouts.etp * layouts.expert) == 0)
        sensible = sensible & ~find_repeated(layouts, self.stated)
        return np.broadcast_to(sensible, layouts.shape)


def enumerate_layouts(pes: int, **lists: Iterable[int]) -> Layouts:
    """All candidates of so many PEs: tensor x context x pipeline x data, with every setting.

    lists: values of some columns, of degrees and of settings.
    """
    return list_product(multiply(pes, lists).layouts)


def list_candidates(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> Layouts:
    """The candidates of `make_space` as a list."""
    space = make_space(net, pes, most, lists)
    return list_product(space.layouts, space.find_candidates(space.layouts))


def list_product(layouts: Layouts, mask: Column | None = None) -> Layouts:
    """The list of a product's layouts, as far as a mask has them, in the order of their columns."""
    numbers = np.arange(prod(layouts.shape)) if mask is None else np.flatnonzero(mask)
    listed = layouts.list_rows(numbers)
    return listed.select(np.lexsort(listed.to_rows().T[::-1]))


def make_space(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> LayoutProduct:
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
    space = multiply(pes, usual)
    # One chunk a stage has no groups.
    group = np.where(space.layouts.chunks > 1, space.layouts.group, 0)
    stated = frozenset(name for name, values in lists.items() if len(values) == 1)
    layouts = replace(space.layouts, group=group)
    return replace(space, layouts=layouts, most=most, stated=stated)


def multiply(pes: int, lists: Mapping[str, Iterable[int]]) -> LayoutProduct:
    """The product of degrees and settings on so many PEs; DEFAULTS: of what is not given."""
    values = {name: [*lists.get(name, default)] for name, default in DEFAULTS.items()}
    degrees = np.array([*factorise(pes, 4)])
    for column, name in enumerate(DEGREES):
        if name in lists:
            degrees = degrees[np.isin(degrees[:, column], [*lists[name]])]
    # Pipelines of as many stages are neighbours: a part of the product has few other stages.
    degrees = degrees[np.argsort(degrees[:, DEGREES.index("pipeline")], kind="stable")]
    sizes = (len(degrees), *(len(values[name]) for name in SHARED[1:]))
    *settings, number = np.ix_(
        *(np.array(values[name]) for name in SETTINGS), np.arange(prod(sizes))
    )
    row, *at = np.unravel_index(number, sizes)
    columns = dict(zip((*DEGREES, "data"), (each[row] for each in degrees.T), strict=True))
    columns |= {name: np.array(values[name])[n] for name, n in zip(SHARED[1:], at, strict=True)}
    return LayoutProduct(Layouts(**columns, **dict(zip(SETTINGS, settings, strict=True))), sizes)


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
