"""Resources of this machine, and how much of a plan fits it at once."""

import os
from collections.abc import Iterable

from grids.grid import Grid
from grids.reading.errors import InputError
from sweep.cube.plan import Plan
from sweep.engine.control_groups import memory_limits
from sweep.engine.memory import DRIVER_BYTES, MemoryEstimate, estimate_memory

# A handful of blocks, however many cores there are. `python -m benchmarks memory` sets what they
# take against what is promised.
AT_ONCE = 4


def blocks_at_once(grid: Grid, plan: Plan) -> int:
    """Blocks that one process has in hand: each in a thread, while some wait for the disk.

    More cores than a few take more processes: Python's own part is one thread's work at a time.
    """
    return max(
        1, min(cores() + 1, AT_ONCE, plan.blocks, _count_fitting(estimate_memory(grid, plan)))
    )


def _count_fitting(memory: MemoryEstimate) -> int:
    """Blocks that this machine's memory holds at once."""
    return (machine_memory() - memory.process) // memory.block


def cores() -> int:
    """Cores that this process may use."""
    # Not os.cpu_count(): a batch job or a container may be bound to some of the cores.
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def needed_memory(grid: Grid, plan: Plan, workers: int) -> int:
    """Bytes that `workers` processes need, a block each, with what drives them; 0: this one."""
    memory = estimate_memory(grid, plan)
    if workers == 0:
        return memory.with_blocks(blocks_at_once(grid, plan))
    return DRIVER_BYTES + workers * memory.with_blocks(1)


def check_memory(grid: Grid, plan: Plan, workers: int) -> None:
    """Refuse a run that this machine's memory cannot hold."""
    needed, there = needed_memory(grid, plan, workers), machine_memory()
    if needed > there:
        what = f"{workers} workers need" if workers else "a block needs"
        raise InputError(
            f"{what} {needed / 1e9:.1f} GB of memory, this machine has {there / 1e9:.1f} GB",
            advice="use fewer workers" if workers else "use a machine with more memory",
        )


def machine_memory(limits: Iterable[int] | None = None) -> int:
    """Bytes of memory of this machine, or of the container or batch job that this process is in."""
    # All of it, not what is free just now: that changes while a sweep runs, and much of what is
    # taken is a cache that the system gives back.
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *(memory_limits() if limits is None else limits)])
