"""Fit: what forbids configurations, without their times."""

from kernels.arrays import Cells, Limits
from kernels.compiled import compiled
from kernels.configuration.case import Case
from kernels.oracle.formulas import find_memory, mark_segmented
from kernels.oracle.limits import early, limits


@compiled(numpy=True)
def find_limits(case: Case) -> Limits:
    """The flags of every cell; of what does not exist, too, which other flags forbid."""
    run = case.run
    memory, capacity = find_memory(case), case.pe.memory_capacity
    return limits(
        mark_segmented(case), early(case.bounds, run, case.network), run, memory, capacity
    )


@compiled(numpy=True)
def find_fit(case: Case) -> tuple[Limits, Cells]:
    """The flags of every cell and the memory that it needs [B], of each choice."""
    run, memory = case.run, find_memory(case)
    flags = early(case.bounds, run, case.network)
    return limits(mark_segmented(case), flags, run, memory, case.pe.memory_capacity), memory
