"""Fit: what forbids configurations, without their times."""

from kernels.arrays import Cells, Limits
from kernels.compiled import compiled
from kernels.configuration.case import Case
from kernels.oracle.formulas import count_segments, find_memory, mark_segmented
from kernels.oracle.limits import find_invariant_flags, limits


@compiled(numpy=True)
def find_limits(case: Case) -> Limits:
    """The flags of every cell; of what does not exist, too, which other flags forbid."""
    return _flag(case, find_memory(case))


@compiled(numpy=True)
def find_fit(case: Case) -> tuple[Limits, Cells]:
    """The flags of every cell and the memory that it needs [B], of each choice."""
    memory = find_memory(case)
    return _flag(case, memory), memory


def _flag(case: Case, memory: Cells) -> Limits:
    flags = find_invariant_flags(case.bounds, case.run, case.network, count_segments(case))
    return limits(mark_segmented(case), flags, case.run, memory, case.pe.memory_capacity)
