"""The plan of a sweep: how the cube is cut into blocks, and what that costs. Integer maths, no I/O.

A block is one shard of every variable, written by exactly one task: the smallest safe parallel
write. A shard holds chunks, the smallest read. Model and dataset never share a block, so that a
pair that cannot exist is a whole block that is not computed.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweep.cube.variables import VARIABLES

if TYPE_CHECKING:
    from grids.grid import Grid

Region = tuple[slice, ...]

# Large enough that compression and files cost little a cell, small enough that a few fit a worker.
# A variable in single precision then has 16 MiB a block.
SHARD_CELLS = 2**22
# The smallest read, and what Zarr compresses at once: as much as a block. Of parts of what it is
# given Zarr makes copies, one after the other (benchmarks/codecs.py, endtoend.py: 2**19 is written
# at two thirds of the rate). To read a slice at one PE count out of 1e8 cells takes 0.17 s, from
# chunks of 2**19 0.06 s. Most questions read the summary, and no cells.
CHUNK_CELLS = 2**22
# Cells of a block for which every layer is reduced (it takes no part in batch, latency ...), times
# layers: bounds what the first stage of the kernels holds.
# In double precision 32 MiB an array.
LAYER_CELLS = 2**22


@dataclass(frozen=True)
class Plan:
    """A cube of `shape` over `dims`, in shards of `shard` and chunks of `chunk` cells.

    cell_bytes: what all variables together store of a cell. layers: of the deepest model. layered:
    the dimensions along which layers are reduced anew.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    shard: tuple[int, ...]
    chunk: tuple[int, ...]
    cell_bytes: int
    layers: int = 1
    layered: tuple[str, ...] = ()

    @property
    def cells(self) -> int:
        """Cells of the cube."""
        # Python's integers, not numpy's: three axes of ten million values are more cells than
        # 2**63, and numpy's product would wrap in silence.
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the cube before compression."""
        return self.cells * self.cell_bytes

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks along each dimension."""
        return tuple(-(-size // shard) for size, shard in zip(self.shape, self.shard, strict=True))

    @property
    def blocks(self) -> int:
        """Blocks of the cube."""
        return math.prod(self.grid)

    def find_region(self, block: int) -> Region:
        """The part of the cube that block 0 <= `block` < `blocks` fills, in C order."""
        # The last dimension runs fastest, as in `np.unravel_index`, by which cubes place blocks.
        starts = []
        for count, shard in zip(reversed(self.grid), reversed(self.shard), strict=True):
            block, position = divmod(block, count)
            starts.append(position * shard)
        return tuple(
            slice(start, min(start + shard, size))
            for start, shard, size in zip(reversed(starts), self.shard, self.shape, strict=True)
        )


def make_plan(
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    cell_bytes: int,
    alone: int,
    shard_cells: int = SHARD_CELLS,
    chunk_cells: int = CHUNK_CELLS,
    layers: int = 1,
    layered: tuple[str, ...] = (),
) -> Plan:
    """The plan of a cube; along its first `alone` dimensions a block holds a single value.

    PE counts come together, as far as they fit: a block then summarises whole lines of them.
    """
    most = max(1, LAYER_CELLS // layers)
    caps = [most if dim in layered else None for dim in dims]
    # PE counts first, then the other dimensions from the last on.
    last_first = sorted(range(alone, len(shape)), key=lambda dim: (dims[dim] != "pe", -dim))
    box = grow_box(shape, shard_cells, last_first, caps)
    # In C order: what a chunk holds is contiguous in the block's memory.
    limits = grow_box(box, chunk_cells, reversed(range(len(box))))
    pieces = [_divide_evenly(size, limit) for size, limit in zip(box, limits, strict=True)]
    shard = tuple(count * size for count, size in pieces)
    chunk = tuple(size for _, size in pieces)
    return Plan(dims, shape, shard, chunk, cell_bytes, layers, layered)


def grow_box(
    shape: tuple[int, ...],
    cells: int,
    order: Iterable[int],
    caps: Sequence[int | None] | None = None,
) -> tuple[int, ...]:
    """The largest box of at most `cells`, grown along dimension after dimension, else 1.

    Dimensions with a cap together hold no more than that.
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


def _divide_evenly(size: int, limit: int) -> tuple[int, int]:
    """How many equal chunks of at most `limit` cover `size`, and their size.

    Chunks must tile their shard, and a shard may reach beyond the cube: so a prime `size` is no
    reason for chunks of one cell.
    """
    count = -(-size // limit)
    return count, -(-size // count)


def plan_cube(grid: "Grid") -> Plan:
    """The plan by which a design space's new cube is cut into blocks."""
    layers = max(map(len, grid.fitting.values()), default=1)
    # 2: model and dataset, of which a block has one each.
    return make_plan(
        grid.dims, grid.shape, count_cell_bytes(grid), 2, layers=layers, layered=list_layered(grid)
    )


def list_layered(grid: "Grid") -> tuple[str, ...]:
    """The dimensions along which layers are reduced anew."""
    return tuple(dim for dim in grid.axes if grid.parameters[dim].layered)


def count_cell_bytes(grid: "Grid") -> int:
    """Bytes that all variables together store of a cell."""
    return sum(VARIABLES[name].dtype.itemsize for name in grid.spec.outputs)
