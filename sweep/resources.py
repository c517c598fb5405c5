"""Whether a plan fits this machine's memory."""

import os

from grids.errors import InputError
from sweep.plan import Plan

# What Python, JAX and Zarr take in a process before the first block (measured: 350 MB).
PROCESS_BYTES = 400_000_000


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


def machine_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
