"""Resources of this machine, and how much of a plan fits it at once.

A process may be deep in a tree of control groups, each of which may limit its memory. Linux tells
the place in /proc/self/cgroup: `0::/path` in version 2, `n:memory:/path` in version 1.
"""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError, format_count
from paradl.sweep.cube.plan import Plan
from paradl.sweep.engine.estimates import DRIVER_BYTES, estimate_memory

# A handful of blocks, however many cores there are. `python -m benchmarks memory` sets what they
# take against what is promised.
AT_ONCE = 4


def blocks_at_once(grid: Grid, plan: Plan) -> int:
    """Blocks that one process has in hand: each in a thread, while some wait for the disk.

    More cores than a few take more processes: Python's own part is one thread's work at a time.
    """
    memory = estimate_memory(grid, plan)
    fitting = (machine_memory() - memory.process) // memory.block
    return max(1, min(cores() + 1, AT_ONCE, plan.blocks, fitting))


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
        what = f"{format_count(workers, 'worker')} with a block each" if workers else "a block"
        raise InputError(
            f"{needed / 1e9:.1f} GB of memory needed for {what}, this machine has "
            f"{there / 1e9:.1f} GB",
            advice="use fewer workers" if workers else "use a machine with more memory",
        )


def machine_memory(limits: Iterable[int] | None = None) -> int:
    """Bytes of memory of this machine, or of the container or batch job that this process is in."""
    # All of it, not what is free just now: that changes while a sweep runs, and much of what is
    # taken is a cache that the system gives back.
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *(memory_limits() if limits is None else limits)])


MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")


def memory_limits(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> list[int]:
    """Bytes that each of this process' groups grants, where it sets a limit."""
    limits = []
    for line in _read_text(membership).splitlines():
        # At most two cuts: a path may have colons of its own.
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, name = mount, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = mount / "memory", "memory.limit_in_bytes"
        else:
            continue
        # Above the top ("..") there is only what is mounted here.
        place = PurePosixPath("/" if ".." in PurePosixPath(path).parts else path)
        # The group, and its ancestors: in a container often the root alone is there.
        for group in (place, *place.parents):
            text = _read_text(root.joinpath(*group.parts[1:], name)).strip()
            # "max" sets no limit. Version 1 says so by a number near 2**63, more than any machine
            # has: as one of several whose least counts it does no harm.
            if text.isdecimal():
                limits.append(int(text))
    return limits


def _read_text(file: Path) -> str:
    """Return the text of a file of the kernel; empty where there is none."""
    try:
        return file.read_text()
    except OSError:
        return ""
