"""The smallest group: how many PEs must share a replica for its samples to fit in their memory."""

from dataclasses import replace

import numpy as np

from grids.grid import Grid, Index
from grids.inputs.divisors import divisors
from grids.models.layers import Floats
from kernels.fit import find_limits
from kernels.flags import FORBIDS

# Sizes come in so many at a time: so most configurations share one compiled program.
MULTIPLE = 16


def find_smallest_group(grid: Grid, index: Index) -> int | None:
    """PEs of the smallest group that nothing forbids; 0: none is allowed.

    None: groups have one PE, or the samples do not fit the model.

    A hybrid's are the sizes that divide its PEs, with as many samples as the spec's scaling then
    gives a replica. A group of all PEs may be of any power of two that the machine has, too.
    """
    strategy = grid.strategies[index[3]]
    if strategy.group_strategy == "none":
        return None
    sizes = _pad(_list_sizes(grid, index))
    axis = {"group" if strategy.hybrid else "pe": sizes}
    case = grid.case(index, grid.axes | axis, replace(strategy, group=None))
    if case is None:
        return None
    allowed = (np.asarray(find_limits(case)) & FORBIDS) == 0
    # Of `segments=best` any number of segments will do.
    allowed = allowed.any(axis=tuple(range(len(case.choices))))
    fits = np.broadcast_to(allowed.ravel(), sizes.shape)
    return next((int(size) for size in sizes[fits]), 0)


def _list_sizes(grid: Grid, index: Index) -> list[int]:
    """The sizes that a planner may choose from."""
    count = int(grid.axes["pe"][0])
    sizes = set(divisors(count))
    if not grid.strategies[index[3]].hybrid:
        sizes |= {2**n for n in range(grid.systems[index[2]].most_pes.bit_length())}
    return sorted(sizes)


def _pad(sizes: list[int]) -> Floats:
    """The sizes, the last of them repeated."""
    return np.pad(np.array(sizes, float), (0, -len(sizes) % MULTIPLE), "edge")
