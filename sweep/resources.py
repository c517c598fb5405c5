"""What this machine has, and how much of a plan fits it at once."""

import os
from collections.abc import Iterable
from pathlib import Path

from grids.errors import InputError
from sweep.plan import Plan

# Where Linux tells a container's limit: control groups of version 2, and of 1.
CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
# What Python, JAX and Zarr take in a process before the first block (measured: 350 MB).
PROCESS_BYTES = 400_000_000
# A handful of blocks, however many cores there are.
AT_ONCE = 4


def blocks_at_once(plan: Plan) -> int:
    """Blocks that one process has in hand: each in a thread, while some wait for the disk.

    More cores than a few take more processes: Python's own part is one thread's work at a time.
    """
    fitting = (machine_memory() - PROCESS_BYTES) // max(1, plan.block_bytes)
    return max(1, min(cores() + 1, AT_ONCE, fitting))


def cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def needed_memory(plan: Plan, workers: int) -> int:
    """Bytes that `workers` processes need at once."""
    return workers * (PROCESS_BYTES + plan.block_bytes)


def check_memory(plan: Plan, workers: int) -> None:
    """Refuse a run that this machine's memory cannot hold."""
    needed, there = needed_memory(plan, workers), machine_memory()
    if needed > there:
        raise InputError(
            f"{workers} workers need {needed / 1e9:.1f} GB of memory, this machine has "
            f"{there / 1e9:.1f} GB",
            advice="use fewer --workers",
        )


def machine_memory(limits: Iterable[Path] = CGROUP_LIMITS) -> int:
    """Bytes of memory of this machine, or of the container or batch job that this process is in."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *(limit for path in limits if (limit := _limit(path)) is not None)])


def _limit(path: Path) -> int | None:
    """What a file of the kernel says; "max", and a file that is not there, set no limit."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
