"""The layout of a store: its arrays, their dimensions, and the part of each that a block fills."""

from paradl.kernels.names.statistics import STATISTICS
from paradl.sweep.cube.plan import Plan, Region, grow_box

SERIAL = "serial_time"  # on one PE, the reference of speedup
# `SERIAL` does not vary along these. Of blocks that differ only along these, the first writes it,
# so that no file has two writers.
NOT_SERIAL = ("strategy", "pe")
DONE = "progress/done"
# Marks of a million blocks are read in a second; one file per block took 160 s. A damaged file
# costs at most this many blocks.
MARKS_PER_FILE = 1024
SUMMARY = "summary/statistics"
STATISTIC = "summary/statistic"
# Blocks along the PE counts; a line that spans several blocks has a summary from each.
PART = "pe_part"

Size = tuple[int, int]  # of a dimension, and of a file's part of it


def lay_out(name: str, plan: Plan, statistics: int = len(STATISTICS)) -> dict[str, Size]:
    """Return the dimensions of an array that blocks are written to, with their sizes.

    statistics: how many the store's summary has.
    """
    blocks = dict(zip(plan.dims, plan.grid, strict=True))
    if name == DONE:
        # The last dimension first: blocks are computed in C order, so those that finish at about
        # the same time share a file.
        box = grow_box(plan.grid, MARKS_PER_FILE, reversed(range(len(plan.grid))))
        return {dim: (blocks[dim], n) for dim, n in zip(plan.dims, box, strict=True)}
    sizes = zip(plan.dims, zip(plan.shape, plan.shard, strict=True), strict=True)
    if name != SUMMARY:
        return {dim: size for dim, size in sizes if name != SERIAL or dim not in NOT_SERIAL}
    dims: dict[str, Size] = {}
    for dim, (size, shard) in sizes:
        if dim == "pe":
            # A question reads all statistics of a block, so they are one chunk in one file.
            dims |= {"statistic": (statistics,) * 2, PART: (blocks[dim], 1)}
        else:
            dims[dim] = size, shard
    return dims


def find_shape(name: str, plan: Plan, statistics: int = len(STATISTICS)) -> tuple[int, ...]:
    """Return the shape of an array that blocks are written to."""
    return tuple(size for size, _ in lay_out(name, plan, statistics).values())


def find_part(name: str, plan: Plan, region: Region, statistics: int = len(STATISTICS)) -> Region:
    """Return the part of an array that belongs to the block of a region of cells."""
    at = [extent.start // size for extent, size in zip(region, plan.shard, strict=True)]
    if name == DONE:
        return tuple(slice(n, n + 1) for n in at)
    of_dims = dict(zip(plan.dims, region, strict=True))
    if name == SERIAL:
        return tuple(extent for dim, extent in of_dims.items() if dim not in NOT_SERIAL)
    if name != SUMMARY:
        return region
    pe = plan.dims.index("pe")
    summary = (slice(0, statistics), slice(at[pe], at[pe] + 1))
    return (*region[:pe], *summary, *region[pe + 1 :])
