"""The layout of a store: its arrays, their dimensions, and the part of each that a block fills."""

from kernels.names.statistics import STATISTICS
from sweep.cube.plan import Plan, Region, grow_box

# The time on one PE, which speedup is counted from, varies along all dimensions but these.
SERIAL = "serial_time"
# Of the blocks that differ only along these the first writes it: no file has two writers.
NOT_SERIAL = ("strategy", "pe")
DONE = "progress/done"
# Marks of finished blocks in one file. A million blocks are then read in a second (a file each
# took 160 s), and a file that is damaged costs no more than so many blocks.
MARKS_A_FILE = 1024
SUMMARY = "summary/statistics"
STATISTIC = "summary/statistic"
# Blocks along the PE counts: a line of them that spans several has a summary from each.
PART = "pe_part"

Size = tuple[int, int, int]  # of a dimension, of a shard and of a chunk along it


def lay_out(name: str, plan: Plan, statistics: int = len(STATISTICS)) -> dict[str, Size]:
    """The dimensions of an array that blocks are written to, with their sizes.

    statistics: how many of them the store's summary has.
    """
    blocks = dict(zip(plan.dims, plan.grid, strict=True))
    if name == DONE:
        # The last dimension first: blocks are computed in C order, so that those that are done at
        # about the same time share a file of marks.
        box = grow_box(plan.grid, MARKS_A_FILE, reversed(range(len(plan.grid))))
        return {dim: (blocks[dim], n, n) for dim, n in zip(plan.dims, box, strict=True)}
    sizes = zip(plan.dims, zip(plan.shape, plan.shard, plan.chunk, strict=True), strict=True)
    if name != SUMMARY:
        return {dim: size for dim, size in sizes if name != SERIAL or dim not in NOT_SERIAL}
    dims: dict[str, Size] = {}
    for dim, (size, shard, _) in sizes:
        if dim == "pe":
            # All statistics of a block in one chunk, and so in one file: a question reads them all.
            dims |= {"statistic": (statistics,) * 3, PART: (blocks[dim], 1, 1)}
        else:
            dims[dim] = size, shard, shard
    return dims


def find_shape(name: str, plan: Plan, statistics: int = len(STATISTICS)) -> tuple[int, ...]:
    """The shape of an array that blocks are written to."""
    return tuple(size for size, _, _ in lay_out(name, plan, statistics).values())


def find_part(name: str, plan: Plan, region: Region, statistics: int = len(STATISTICS)) -> Region:
    """The part of an array that belongs to the block of a region of cells."""
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
