"""Blocks of layouts, and of the cells of a case: seconds per iteration, memory and limits.

In numpy: degrees and settings are whole numbers, and answers are of lists of layouts.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np

from paradl.kernels.columns import Column, add, find_any
from paradl.kernels.machine.machines import Machines
from paradl.kernels.machine.rates import Rates
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.names.flags import Limit
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.oracle.block_times import TERMS, time_exchanges, time_iteration
from paradl.kernels.parallelism.dimensions import find_reasons
from paradl.kernels.work.block_memory import measure_memory
from paradl.kernels.work.block_work import BlockWork
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import is_uneven
from paradl.kernels.work.transformer import Training, Transformer

COMPUTING = np.array([LAYOUT_TERMS[name].part == "compute" for name in TERMS])


def list_possible(limit: Column) -> Column:
    """List the rows of layouts whose degrees divide what they have to, given their flags."""
    # Uneven stages can run: the slowest one decides.
    return np.flatnonzero((limit & ~Limit.UNEVEN) == 0)


def sum_memory(net: Transformer, layouts: Layouts, training: Training) -> Column:
    """Memory of the fullest PE [B] [layouts]."""
    parts, _ = measure_memory(net, layouts, training)
    return np.asarray(sum(parts.values()))


def time_layouts(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, fabric: Fabric
) -> Column:
    """Seconds per iteration by TERMS [terms, layouts]."""
    terms = time_iteration(net, layouts, training, rates, fabric)
    # The calibration factor applies to every term: runs state totals only.
    return np.stack([terms[name] for name in TERMS]) * rates.slowdown


def total_exchanges(
    net: Transformer, layouts: Layouts, training: Training, rates: Rates, fabric: Fabric
) -> dict[str, Column]:
    """Seconds of communication per iteration by term [layouts], exposed and hidden."""
    totals = time_exchanges(net, layouts, training, rates, fabric)
    return {name: seconds * rates.slowdown for name, seconds in totals.items()}


def add_seconds(seconds: Column) -> tuple[Column, Column]:
    """Compute and communication seconds, from seconds [terms, layouts]."""
    # Python's sum: the order of np.sum depends on the number of layouts.
    return sum(seconds[COMPUTING]), sum(seconds[~COMPUTING])


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


@lru_cache(maxsize=1)  # flags, memory and times of a case ask: rules take a sixth of the time
def flag_cells(work: BlockWork) -> Column:
    """Find flags that follow from the layout of each cell [cells]."""
    limits = np.zeros(prod(work.shape), int)
    for start, layouts in work.list_parts(work.shape):
        found = find_limits(work.net, layouts.round_batch(), work.training)
        limits[start : start + len(layouts)] = found
    return limits.reshape(work.shape)


def measure_cells(work: BlockWork) -> Column:
    """Find bytes of tensors on the fullest PE [cells]; NaN where a degree divides nothing."""

    def find(layouts: Layouts, rows: Column) -> Column:
        return sum_memory(work.net, layouts, work.training)

    return _answer_cells(work, work.shape, find)


def time_cells(work: BlockWork, machines: Machines) -> Column:
    """Find seconds of an iteration by TERMS [terms, cells]; NaN where a degree divides nothing."""
    place = machines.place if machines.number > 1 else np.zeros(1, int)
    shape = np.broadcast_shapes(work.shape, place.shape)
    of_cells = np.broadcast_to(place, shape)

    def find(layouts: Layouts, rows: Column) -> Column:
        if machines.number > 1:
            layouts = replace(layouts, machine=of_cells.flat[rows])
        return time_layouts(work.net, layouts, work.training, machines.rates, machines.fabric)

    return _answer_cells(work, shape, find, len(TERMS))


def _answer_cells(
    work: BlockWork,
    shape: tuple[int, ...],
    find: Callable[[Layouts, Column], Column],
    *leading: int,
) -> Column:
    """Answer cells of this shape [*leading, cells]; NaN where a degree divides nothing.

    find: answers layouts, given their positions.
    """
    answers = np.full((*leading, prod(shape)), np.nan)
    limits = np.broadcast_to(flag_cells(work), shape).ravel()
    for start, layouts in work.list_parts(shape):
        rows = list_possible(limits[start : start + len(layouts)])
        if rows.size:
            answers[..., start + rows] = find(layouts.select(rows), start + rows)
    return answers.reshape(*leading, *shape)
