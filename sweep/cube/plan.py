"""The plan of a sweep: how the cube is cut into blocks, and its arrays into files of them.

A block is one shard of every variable, written by exactly one task: the smallest safe parallel
write. It is also the smallest read. A block has one model and one data set, so that pairs that do
not fit are whole blocks, which are skipped. Integer maths, no I/O.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paradl.kernels.names.statistics import STATISTICS
from paradl.sweep.cube.variables import VARIABLES

if TYPE_CHECKING:
    from paradl.grids.grid import Grid

Region = tuple[slice, ...]

# Large enough for compression and files to cost little per cell, small enough for a few to fit a
# worker: 16 MiB per variable in single precision.
#
# Zarr reads and compresses a shard at once. Smaller chunks inside it would be copied one after
# another: 2**19 is written at two thirds of the rate. A slice at one PE count out of 1e8 cells is
# then read in 0.17 s instead of 0.06 s, but most questions read the summary and no cells.
SHARD_CELLS = 2**22
# A search stores no cells, and of each block the host has its share, whatever the cells. Of 2**25 a
# billion takes 0.88 of the CPU time (2026-11); of a search of more than 2**35 blocks grow, up to
# 2**28, so that a GPU does not wait for the host.
SEARCHED_CELLS = 2**25, 2**28
SEARCHED_BLOCKS = 2**10
# Lines of PE counts in a block of so many cells: each has a summary of some 200 bytes.
SEARCHED_LINES = 2**18
# Bound on layers times cells of a block for which layers are reduced (once for all batches,
# latencies ...): the memory of the kernels' first stage, 32 MiB per array in double precision.
LAYER_CELLS = 2**22


@dataclass(frozen=True)
class Plan:
    """A cube of `shape` over `dims`, cut into shards of `shard` cells.

    cell_bytes: of all variables, per cell. layers: of the deepest model. layered: dimensions along
    which layers must be reduced again.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    shard: tuple[int, ...]
    cell_bytes: int
    layers: int = 1
    layered: tuple[str, ...] = ()

    @property
    def cells(self) -> int:
        """Cells of the cube."""
        # Python integers: three axes of ten million values have more than 2**63 cells.
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the cube before compression [bytes]."""
        return self.cells * self.cell_bytes

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of blocks along each dimension."""
        return tuple(-(-size // shard) for size, shard in zip(self.shape, self.shard, strict=True))

    @property
    def blocks(self) -> int:
        """Number of blocks of the cube."""
        return math.prod(self.grid)

    def find_position(self, block: int) -> tuple[int, ...]:
        """Return a block's position among the blocks along each dimension, which are in C order."""
        return tuple(map(int, np.unravel_index(block, self.grid)))

    def find_region(self, block: int) -> Region:
        """Return the part of the cube that a block fills."""
        sizes = zip(self.find_position(block), self.shard, self.shape, strict=True)
        return tuple(slice(at * shard, min((at + 1) * shard, size)) for at, shard, size in sizes)

    def count_cells(self, blocks: int | NDArray[np.intp]) -> NDArray[np.int64]:
        """Count the cells of a block, or of each of many: a million take 0.1 s."""
        cells = np.ones(np.shape(blocks), np.int64)
        positions = np.unravel_index(blocks, self.grid)
        for at, shard, size in zip(positions, self.shard, self.shape, strict=True):
            cells = cells * np.minimum(shard, size - at * shard)
        return cells


def make_plan(
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    cell_bytes: int,
    alone: int,
    shard_cells: int = SHARD_CELLS,
    layers: int = 1,
    layered: tuple[str, ...] = (),
) -> Plan:
    """Plan a cube; blocks have a single value along the first `alone` dimensions.

    A block has as many PE counts as fit, so that it can summarise whole lines of them.
    """
    most = max(1, LAYER_CELLS // layers)
    caps = [most if dim in layered else None for dim in dims]
    # PE counts first, then the other dimensions beginning with the last.
    order = sorted(range(alone, len(shape)), key=lambda dim: (dims[dim] != "pe", -dim))
    shard = grow_box(shape, shard_cells, order, caps)
    return Plan(dims, shape, shard, cell_bytes, layers, layered)


def grow_box(
    shape: tuple[int, ...],
    cells: int,
    order: Iterable[int],
    caps: Sequence[int | None] | None = None,
) -> tuple[int, ...]:
    """Grow a box of at most `cells`, one dimension after another; the product of those with a cap
    stays within it.
    """
    box = [1] * len(shape)
    caps = caps or [None] * len(shape)
    for dim in order:
        room, cap = cells // math.prod(box), caps[dim]
        if cap is not None:
            capped = (size for size, cap in zip(box, caps, strict=True) if cap is not None)
            room = min(room, cap // math.prod(capped))
        box[dim] = max(1, min(shape[dim], room))
        if math.prod(box) * 2 > cells:  # full: not even two more fit
            break
    return tuple(box)


def plan_cube(grid: "Grid") -> Plan:
    """Plan a new cube of a design space."""
    layers = max(map(len, grid.fitting.values()), default=1)
    cells, cell_bytes = SHARD_CELLS, count_cell_bytes(grid)
    if cell_bytes == 0:
        cells = _count_searched(math.prod(grid.shape), grid.axes["pe"].size)
    # A block has one value of the first 2 dimensions, model and data set.
    return make_plan(
        grid.dims, grid.shape, cell_bytes, 2, cells, layers=layers, layered=list_layered(grid)
    )


def _count_searched(cells: int, pes: int) -> int:
    """Return the cells of a block of a search of so many, over so many PE counts."""
    least, most = SEARCHED_CELLS
    wanted = min(max(cells // SEARCHED_BLOCKS, least), most)
    return max(SHARD_CELLS, min(wanted, SEARCHED_LINES * pes))


def list_layered(grid: "Grid") -> tuple[str, ...]:
    """List the dimensions along which layers must be reduced again."""
    return tuple(dim for dim in grid.axes if grid.parameters[dim].layered)


def count_cell_bytes(grid: "Grid") -> int:
    """Return the bytes that all variables together store per cell."""
    return sum(VARIABLES[name].dtype.itemsize for name in grid.spec.outputs)


SERIAL = "serial_time"  # on one PE, the reference of speedup
# `SERIAL` does not vary along these: of blocks that differ only along them, the first writes it.
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
    """Return the dimensions of an array of blocks; statistics: how many the summary has."""
    blocks = dict(zip(plan.dims, plan.grid, strict=True))
    if name == DONE:
        # The last dimension first: blocks that finish at about the same time share a file.
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
    pe = at[plan.dims.index("pe")]
    of_dims = dict(zip(plan.dims, region, strict=True))
    of_dims |= {"statistic": slice(0, statistics), PART: slice(pe, pe + 1)}
    return tuple(of_dims[dim] for dim in lay_out(name, plan, statistics))
