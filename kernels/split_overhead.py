"""Split overhead: what dividing layers costs a PE beside arithmetic (docs/machine.md)."""

from kernels.arrays import Cells
from kernels.compute import PE
from kernels.group import GroupWork
from kernels.namespace import xp
from kernels.run import Run
from kernels.software import Software


def split_overhead(work: GroupWork, run: Run, pe: PE, software: Software) -> Cells:
    """u b a sum(y) (1-1/p2) / (assembly BW), and by filter a time for each peer's part.

    Gathered outputs are put together: by filter forward and backward, by channel on the way back
    alone, u = 2 and 1.
    """
    items, gathers = xp.sum(work.gathered, axis=0), xp.sum(work.gathers, axis=0)
    gathered = run.batch * run.delta * items * (1 - 1 / run.p2)
    copies = (2 * work.by_filter + work.by_channel) * gathered / pe.memory_bandwidth
    # By channel no time of parts was seen.
    parts = 2 * work.by_filter * gathers * (run.p2 - 1)
    return copies / software.assembly + parts * software.part_overhead
