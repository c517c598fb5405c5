"""Fit: what forbids configurations, without their times."""

from kernels.arrays import Cells, Limits
from kernels.compiled import compiled
from kernels.configuration.answers import AnyCase, LayoutCase
from kernels.oracle.formulas import count_segments, find_memory, mark_segmented
from kernels.oracle.limits import find_invariant_flags, limits


@compiled(numpy=True)
def find_limits(case: AnyCase) -> Limits:
    """Return the flags of every cell, even of configurations that cannot exist."""
    return find_fit(case)[0]


@compiled(numpy=True)
def find_fit(case: AnyCase) -> tuple[Limits, Cells]:
    """Return the flags of every cell and the memory that it needs [B], by choice."""
    if isinstance(case, LayoutCase):
        return case.answer.limit, case.answer.memory
    memory = find_memory(case)
    flags = find_invariant_flags(case.bounds, case.run, case.network, count_segments(case))
    flagged = limits(mark_segmented(case), flags, case.run, memory, case.pe.memory_capacity)
    return flagged, memory
