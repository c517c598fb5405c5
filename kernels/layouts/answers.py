"""Answers of layouts: seconds per iteration, memory and limits."""

from typing import NamedTuple

import numpy as np

from paradl.kernels.layouts.columns import Column, add, find_any
from paradl.kernels.layouts.dimensions import find_reasons
from paradl.kernels.layouts.memory import measure_memory
from paradl.kernels.layouts.rates import Rates
from paradl.kernels.layouts.schedules import is_uneven
from paradl.kernels.layouts.time import TERMS, time_exchanges, time_iteration
from paradl.kernels.layouts.transformer import Layouts, Training, Transformer
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.names.flags import Limit
from paradl.kernels.names.layout_terms import LAYOUT_TERMS

COMPUTING = np.array([LAYOUT_TERMS[name].part == "compute" for name in TERMS])
# Layouts per call: 2**16 makes some 60 arrays of 0.5 MB.
MOST = 2**16


class LayoutAnswers(NamedTuple):
    """Seconds per iteration [terms, layouts], memory of the fullest PE [B] and flags [layouts].

    NaN where a degree does not divide what it has to.
    """

    seconds: Column
    memory: Column
    limit: Column


def answer_layouts(
    net: Transformer,
    layouts: Layouts,
    training: Training,
    rates: Rates,
    fabric: Fabric,
) -> LayoutAnswers:
    """Answers of layouts, by TERMS; the caller, who knows the capacity, adds `Limit.MEMORY`."""
    answers = LayoutAnswers(
        np.full((len(TERMS), len(layouts)), np.nan),
        np.full(len(layouts), np.nan),
        find_limits(net, layouts, training),
    )
    # Uneven stages can run: the slowest one decides.
    rows = np.flatnonzero((answers.limit & ~Limit.UNEVEN) == 0)
    for start in range(0, len(rows), MOST):
        part = rows[start : start + MOST]
        chosen = layouts.select(part)
        parts, _ = measure_memory(net, chosen, training)
        answers.seconds[:, part] = time_layouts(net, chosen, training, rates, fabric)
        answers.memory[part] = sum(parts.values())
    return answers


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
