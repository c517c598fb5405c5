"""Blocks of layouts, and of the cells of a case: seconds per iteration, memory and limits.

In numpy: degrees and settings are whole numbers, and answers are of lists of layouts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from paradl.kernels.columns import Column, add, find_any, find_most
from paradl.kernels.configuration.case import Case
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.rates import Rates, StackFacts, find_rates
from paradl.kernels.machine.speeds import Fabric, take_levels
from paradl.kernels.names.flags import Limit
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.oracle.block_times import TERMS, IterationTimes, time_exchanges
from paradl.kernels.parallelism.alignment import count_level_pes
from paradl.kernels.parallelism.divided_blocks import DividedBlocks
from paradl.kernels.parallelism.layout import find_reasons
from paradl.kernels.parallelism.transfers import Transfers
from paradl.kernels.work.block_memory import measure_memory, measure_stages
from paradl.kernels.work.block_work import BlockWork
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import is_uneven, list_stages
from paradl.kernels.work.transformer import Training, Transformer

COMPUTING = tuple(LAYOUT_TERMS[name].part == "compute" for name in TERMS)


def is_possible(limit: Column) -> Column:
    """Whether degrees divide what they have to, given the flags [layouts]."""
    # Uneven stages can run: the slowest one decides.
    possible: Column = (limit & ~int(Limit.UNEVEN)) == 0
    return possible


def sum_memory(net: Transformer, layouts: Layouts, training: Training) -> Column:
    """Memory of the fullest PE [B] [layouts]."""
    parts, _ = measure_memory(net, layouts, training)
    return np.asarray(sum(parts.values()))


def total_exchanges(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, fabric: Fabric
) -> dict[str, Column]:
    """Seconds of communication per iteration by term [layouts], exposed and hidden."""
    totals = time_exchanges(net, layouts, training, rates, fabric)
    return {name: seconds * rates.slowdown for name, seconds in totals.items()}


def add_seconds(seconds: Sequence[Column] | Column) -> tuple[Column, Column]:
    """Compute and communication seconds, from seconds by TERMS [layouts]."""
    pairs = list(zip(COMPUTING, seconds, strict=True))
    # Python's sum: the order of np.sum depends on the number of layouts.
    compute = sum(s for is_computing, s in pairs if is_computing)
    communication = sum(s for is_computing, s in pairs if not is_computing)
    return np.asarray(compute), np.asarray(communication)


def find_limits(net: Transformer, layouts: Layouts, training: Training) -> Column:
    """Flags of layouts that follow from their degrees alone."""
    reasons = find_reasons(net, layouts, training)
    too_many = reasons.pop("more_stages_than_blocks")
    too_small = training.find_batch(layouts) < training.count_least(layouts)
    # A batch that is too small is not divisible either: one reason is enough.
    indivisible = find_any(reasons.values()) & ~too_small
    uneven = is_uneven(net, layouts, training)
    flags = (
        (too_many, Limit.TOO_MANY_PES),
        (too_small, Limit.BATCH_TOO_SMALL),
        (indivisible, Limit.DOES_NOT_DIVIDE),
        (uneven, Limit.UNEVEN),
    )
    return add(mask * int(flag) for mask, flag in flags)


def make_work(
    net: Transformer,
    training: Training,
    facts: StackFacts,
    columns: Mapping[str, Column],
    network: Network,
) -> BlockWork:
    """Return the work of cells: what follows from whole numbers alone is found here, once.

    columns [cells]: those of `Layouts`. network: of the cells, whose spans are constant.
    """
    columns = {name: _narrow(column) for name, column in columns.items()}
    layouts = Layouts(**columns)
    # More stages are forbidden: of as many as a machine has PEs, all pairs would be compared.
    most = net.blocks + 2
    pipeline, chunks = np.minimum(layouts.pipeline, most), np.minimum(layouts.chunks, most)
    staged = replace(layouts, pipeline=pipeline, chunks=chunks)
    spans = np.reshape(network.span, len(network.span))
    levels = np.unique(spans).size  # others pad it
    known = replace(take_levels(network, levels), span=spans[:levels])
    used = count_level_pes(replace(known, size=float(np.max(network.size))), layouts)
    is_partial = any(span.ndim for span in used)
    return BlockWork(
        *(net, training, facts, columns),
        stages=tuple(list_stages(net, staged, training)),
        levels=levels,
        spans=np.stack(np.broadcast_arrays(*used, layouts.pes)[:-1]) if is_partial else None,
    )


def _narrow(values: Column) -> Column:
    """Return values with size 1 along the dimensions in which they are equal."""
    for axis in range(values.ndim):
        if values.size and np.all(values == (one := values.take([0], axis))):
            values = one
    return values


@lru_cache(maxsize=1)  # flags, memory and times of a case ask: rules take a sixth of the time
def flag_cells(work: BlockWork) -> Column:
    """Find flags that follow from the layout of each cell [cells]. work: with whole batches."""
    return find_limits(work.net, work.divided, work.training)


def measure_cells(case: Case) -> Column:
    """Find bytes of tensors on the fullest PE [cells]; NaN where a degree divides nothing."""
    work = case.blocks
    measured = measure_stages(work.net, work.divided, work.training, work.stages)
    memory = find_most(size for _, size in measured)
    return np.where(is_possible(flag_cells(case.whole_blocks)), memory, np.nan)


def time_cells(case: Case) -> list[Column]:
    """Find seconds of an iteration by TERMS [cells]; NaN where a degree divides nothing."""
    work, possible = case.blocks, is_possible(flag_cells(case.whole_blocks))
    network = take_levels(case.network, work.levels)
    rates = find_rates(case.pe, case.software, work.facts)
    transfers = Transfers(
        Fabric.from_network(network, case.software),
        work.divided.pes,
        () if work.spans is None else [*np.asarray(work.spans)],
    )
    divided = DividedBlocks(work.net, work.divided, work.training, rates, transfers)
    terms = IterationTimes(divided, work.stages).keep_slowest()
    return [np.where(possible, rates.slowdown * terms[name], np.nan) for name in TERMS]
