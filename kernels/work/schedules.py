"""Pipeline schedules: micro-batches in flight, and the blocks of each stage.

Megatron-LM, schedules.py; Narayanan et al. 2021 (SC21), section 2.2; Huang et al. 2019 (GPipe);
Qi et al. 2023, "Zero Bubble Pipeline Parallelism" (zb1p, zbv).

To add one: a row of `SCHEDULES`; for strategies its name in `Schedule` of `kernels.options` and in
`SCHEDULES` (or `LAYOUT_SCHEDULES`, of blocks alone) of `grids.entries.strategy_words`. Tests:
tests/test_layouts.py, tests/test_reference_products.py.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from paradl.kernels.columns import Column, find_distinct
from paradl.kernels.divisors import list_divisors
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Transformer


class Schedule(NamedTuple):
    """A row of SCHEDULES.

    in_flight: two numbers, of which the smaller is the most micro-batches whose activations a stage
    keeps, as a function of p stages, stage i, m micro-batches, v chunks and n consecutive
    micro-batches per chunk. formula: the same in symbols of explanations, q_p stages and S
    micro-batches. is_late: all logits are kept until the first backward pass. is_folded: each
    stage has two chunks in a V, so that the first stage holds both ends of the network. bubble: as
    a fraction of the 1F1B bubble. waits: stages wait for every message (Megatron-LM, arguments.py:
    messages overlap with interleaving alone).
    """

    in_flight: Callable[[Any, Any, Any, Any, Any], tuple[Any, Any]]
    formula: str
    is_late: bool = False
    is_folded: bool = False
    bubble: float = 1.0
    waits: bool = False


SCHEDULES: Mapping[str, Schedule] = {
    "gpipe": Schedule(lambda p, i, m, v, n: (m, m), "S", is_late=True),
    "1f1b": Schedule(lambda p, i, m, v, n: (p - i, m), "min(q_p-i, S)", waits=True),
    "interleaved": Schedule(
        lambda p, i, m, v, n: ((2 * (p - 1 - i) + (v - 1) * n + 1) / v, m),
        "min((2 (q_p-1-i) + (v-1) q_p + 1)/v, S)",
    ),
    "zb1p": Schedule(lambda p, i, m, v, n: (p, m), "min(q_p, S)", bubble=1 / 3),
    "zbv": Schedule(lambda p, i, m, v, n: (p, m), "min(q_p, S)", is_folded=True, bubble=0.0),
}
# The schedule that becomes interleaved with several chunks per stage.
INTERLEAVES = "1f1b"
# Schedules that a user can name.
PLAIN = tuple(name for name in SCHEDULES if name != "interleaved")


class Stage(NamedTuple):
    """One pipeline stage of each layout: its index [layouts], number of blocks of each kind [kinds,
    layouts], and whether it holds the embedding and the output layer [layouts]."""

    number: Column
    counts: Column
    first: Column
    last: Column


def list_stages(net: Transformer, layouts: Layouts, training: Training) -> list[Stage]:
    """Stages that suffice to find the fullest and the slowest one of each layout.

    Of stages with equal blocks and ends, the first keeps the most micro-batches in flight; the
    embedding only adds parameters, so that the first stage represents middle stages with the same
    blocks. A layout with fewer such stages repeats its first one.
    """
    (p, v), place = find_distinct(layouts.pipeline, layouts.chunks)
    columns, numbers = np.arange(len(p)), np.arange(p.max(initial=1))[:, None]
    stage = make_stage(net, p, v, training, numbers)
    parts = np.concatenate([stage.counts, stage.last[None]])
    is_same = np.all(parts[:, :, None] == parts[:, None], axis=0)  # [stages, stages, shapes]
    is_earlier = (numbers > numbers[:, 0])[:, :, None]
    is_new = ~np.any(is_same & is_earlier, axis=1) & (numbers < p)
    order = np.argsort(~is_new, axis=0, kind="stable")[: is_new.sum(axis=0).max(initial=1)]
    # Repeating the first stage changes no maximum.
    chosen = np.where(np.take_along_axis(is_new, order, axis=0), order, 0)
    return [Stage(*(part[..., number, columns][..., place] for part in stage)) for number in chosen]


def make_stage(
    net: Transformer, pipeline: Column, chunks: Column, training: Training, number: Column | int
) -> Stage:
    """Stage `number` of pipelines with these stages and chunks (arrays that broadcast)."""
    number, *_ = np.broadcast_arrays(number, pipeline)
    counts = count_stage_blocks(net, pipeline, chunks, training, number)
    # Of a V, the first stage has the output layer, too.
    first, folded = number == 0, SCHEDULES[training.schedule].is_folded
    return Stage(number, counts, first, first if folded else pipeline == number + 1)


def count_in_flight(layouts: Layouts, training: Training, stage: Column | int) -> Column:
    """Micro-batches in flight on a stage [layouts]; one chunk of a micro-batch counts 1/v."""
    p, v, m = layouts.pipeline, layouts.chunks, training.count_micro_batches(layouts)
    plain, interleaved = (
        np.minimum(*SCHEDULES[name].in_flight(p, stage, m, v, layouts.passes))
        for name in (training.schedule, "interleaved")
    )
    # Without stages there is nothing to schedule: a backward pass follows its forward pass.
    return np.where(p == 1, 1, np.where(v > 1, interleaved, plain))


def count_stage_blocks(
    net: Transformer, pipeline: Column, chunks: Column, training: Training, number: Column
) -> Column:
    """Number of blocks of each kind in a stage [kinds, ...].

    Chunk c of stage i is part c p + i of the network; in a V, parts i and 2 p - 1 - i. Parts have
    equal numbers of blocks, with the ends as blocks where `counts_ends`; else the remainder goes to
    the first parts, one block each.
    """
    folded = SCHEDULES[training.schedule].is_folded
    parts = count_parts(pipeline, chunks, training)
    ends = counts_ends(net, parts)
    least, more = np.divmod(net.blocks + 2 * ends, parts)
    kinds = np.arange(len(net.kinds))[:, None] == np.array(net.order)
    before = np.pad(np.cumsum(kinds, axis=1), ((0, 0), (1, 0)))  # each block [kinds, blocks + 1]
    counts = np.zeros((len(kinds), *number.shape), int)
    for part, is_there in _list_parts(pipeline, chunks, folded, number):
        # Empty for layouts with fewer chunks or stages. An embedding that counts comes first.
        first, last = (
            np.clip(n * least + np.minimum(n, more) - ends, 0, net.blocks) for n in (part, part + 1)
        )
        last = np.where(is_there, last, first)
        counts += before[:, last] - before[:, first]
    return counts


def count_parts(pipeline: Column, chunks: Column, training: Training) -> Column:
    """Count the parts that stages divide the blocks into; a V has two chunks per stage."""
    folded = SCHEDULES[training.schedule].is_folded & (pipeline > 1)
    parts: Column = pipeline * np.where(folded, 2, chunks)
    return parts


def counts_ends(net: Transformer, parts: Column) -> Column:
    """Whether embedding and loss count as a block each: where only so all parts are equal.

    Megatron-LM, account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split.
    """
    equal: Column = (net.blocks % parts > 0) & ((net.blocks + 2) % parts == 0)
    return equal


def is_uneven(net: Transformer, layouts: Layouts, training: Training) -> Column:
    """Whether some parts have more blocks than others."""
    parts = count_parts(layouts.pipeline, layouts.chunks, training)
    uneven: Column = (net.blocks % parts > 0) & ~counts_ends(net, parts)
    return uneven


def list_chunks(net: Transformer, pipeline: int) -> list[int]:
    """Numbers of chunks that divide the blocks of a stage evenly, with or without the ends."""
    if pipeline == 1:
        return [1]
    units = [n // pipeline for n in (net.blocks, net.blocks + 2) if n % pipeline == 0]
    return sorted({1, *(divisor for n in units for divisor in list_divisors(n))})


def _list_parts(
    pipeline: Column, chunks: Column, folded: bool, number: Column
) -> Iterator[tuple[Column, Column]]:
    """Yield the index of each part of a stage, and whether each layout has that part."""
    if folded:
        yield number, pipeline > number
        yield 2 * pipeline - 1 - number, pipeline > number
        return
    for chunk in range(chunks.max(initial=1)):
        yield chunk * pipeline + number, chunks > chunk


def share_bubble(schedule: str, chunks: Column | int) -> Column:
    """Return the bubble as a fraction of that of 1F1B with one chunk per stage."""
    return np.where(np.greater(chunks, 1), 1 / chunks, SCHEDULES[schedule].bubble)


def name_schedule(schedule: str, chunks: int) -> str:
    """Return the row of SCHEDULES of a schedule with this many chunks per stage."""
    return "interleaved" if chunks > 1 else schedule


def leave_micro_batches(micro_batches: Any, stages: Any, group: Any) -> Any:
    """Find where micro-batches do not fill interleaved stages, in groups of N per chunk.

    They are no multiple of N, or N is below the stages (Megatron-LM, model_parallel_config.py:
    microbatch_group_size_per_vp_stage); or there is one stage, which has nothing to interleave.
    """
    rest = micro_batches % group
    return (stages == 1) | (group < stages) | ((rest > 0) & (rest < stages))
