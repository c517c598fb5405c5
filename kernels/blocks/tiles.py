"""Tiles: parts of a block that fit into the processor's cache, or fill a GPU.

Inside one compiled program a tile's answers are computed, written to the block and summarised while
they are in the cache. Cells are [pe, others ...], PE counts in ascending order.
"""

import math
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from paradl.kernels.arrays import Cells, on_gpu

Tree = TypeVar("Tree")
Starts = tuple[Cells, ...]

# Smaller tiles pay for the loop, larger ones exceed the cache: 2.1 to 4.2 times the rate of blocks
# of 2**22 cells in one piece (2 cores, 2026-11). A tile's output has 512 KiB in single precision.
TILE_CELLS = 2**17
# On a GPU launches bind: 17 fused loops over 2**25 cells at once run at 14 times the rate of tiles
# for a cache (H100, 2026-11).
GPU_TILE_CELLS = 2**25
# Least PE counts of a tile, if there are as many: each tile's summary is merged once.
ROWS = 32


@dataclass(frozen=True)
class Tiles:
    """Cells of `shape` cut into tiles of `size`; the last ones overlap the last but one."""

    shape: tuple[int, ...]
    size: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of tiles along each dimension."""
        return tuple(-(-n // size) for n, size in zip(self.shape, self.size, strict=True))

    @property
    def overlap(self) -> bool:
        """True if the last tile repeats some PE counts."""
        return self.shape[0] % self.size[0] > 0

    def starts(self, tile: Starts) -> Starts:
        """Return the first cell of a tile, given by its number along each dimension."""
        cells = zip(tile, self.shape, self.size, strict=True)
        # The last tile is moved back rather than cut: the loop's body needs tiles of one shape.
        return tuple(jnp.minimum(number * size, n - size) for number, n, size in cells)

    def cut(self, values: Tree, starts: Starts) -> Tree:
        """Return a tile's part of arrays [..., cells]."""
        part: Tree = jax.tree.map(lambda leaf: self._cut(jnp.asarray(leaf), starts), values)
        return part

    def _cut(self, leaf: Array, starts: Starts) -> Array:
        leading = leaf.ndim - len(self.shape)
        if leading < 0:  # a constant
            return leaf
        dims = zip(leaf.shape[leading:], self.shape, self.size, starts, strict=True)
        # Dimensions of size 1 broadcast, and so are not cut.
        slices = [(0, n) if n != full else (start, size) for n, full, size, start in dims]
        first, sizes = zip(*[(0, n) for n in leaf.shape[:leading]], *slices, strict=True)
        return jax.lax.dynamic_slice(leaf, first, sizes)


def count_tile_cells() -> int:
    """Return the cells of a tile, for the device that programs run on."""
    return GPU_TILE_CELLS if on_gpu() else TILE_CELLS


def tiles(shape: tuple[int, ...], cells: int = TILE_CELLS) -> Tiles:
    """Cut cells into tiles of about `cells`: last dimensions whole if they fit, then PE counts."""
    room, others = max(1, cells // min(shape[0], ROWS)), list[int]()
    # The last dimensions are contiguous in memory, so whole ones are written in long runs.
    for n in reversed(shape[1:]):
        others.insert(0, max(1, min(n, room // math.prod(others))))
    rows = max(1, min(shape[0], cells // math.prod(others)))
    return Tiles(shape, (rows, *others))
