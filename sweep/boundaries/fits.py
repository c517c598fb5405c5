"""Find the limits and memory of cells, without their times."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Grid, Index
from paradl.grids.inputs.case import build_nearest_case
from paradl.kernels.divisors import list_divisors
from paradl.kernels.names.arrays import Floats
from paradl.kernels.oracle.answer import find_fit, find_limits
from paradl.sweep.answers.reasons import count_reasons
from paradl.sweep.cube.variables import find_allowed

Cell = Mapping[str, float]

# Values tried at once along an axis: few enough for numpy, which compiles nothing.
WINDOWS = {"pe": 32, "batch": 16}


@dataclass(frozen=True)
class Fit:
    """Flags of cells and their memory [B], over `axes`."""

    axes: Mapping[str, Floats]
    limit: NDArray[np.int64]
    memory: Floats

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """True where nothing forbids a cell."""
        return find_allowed(self.limit)

    @property
    def reasons(self) -> NDArray[np.int64]:
        """Number of limits that forbid each cell."""
        return count_reasons(self.limit)


def find_fits(
    grid: Grid, index: Index, axes: Mapping[str, Floats], strategy: Strategy | None = None
) -> Fit:
    """Limits and memory of each cell over some axes; of several choices the nearest to allowed.

    A parameter without an axis has the machine's value.
    """
    values = {name: axes[name] for name in grid.axes if name in axes}
    case = grid.build(build_nearest_case, index, values, strategy)
    assert case is not None  # its samples fit
    shape = tuple(values.size for values in axes.values())
    found = np.broadcast_arrays(*find_fit(case))  # memory may depend on fewer choices than limits
    flags, memory = (_spread(array, shape, len(case.choices)) for array in found)
    limit = flags.astype(np.int64)
    # The choice [1, cells] with the fewest reasons, then the least memory.
    reasons = count_reasons(limit)
    # Unknown memory comes last, but before choices with more reasons, which get infinity.
    weight = np.nan_to_num(memory, nan=1e301, posinf=1e300)
    pick = np.where(reasons == reasons.min(axis=0), weight, np.inf).argmin(axis=0)[None]
    nearest = (np.take_along_axis(array, pick, 0)[0] for array in (limit, memory))
    return Fit(axes, *nearest)


def list_allowed(
    grid: Grid,
    index: Index,
    cell: Cell,
    axis: str,
    values: Floats,
    strategy: Strategy | None = None,
) -> Floats:
    """Values of pe or batch with which a cell is allowed, ascending."""
    values, window = np.unique(values), WINDOWS[axis]
    allowed = [values[:0]]
    for start in range(0, values.size, window):
        part = values[start : start + window]
        axes = {name: np.array([value], float) for name, value in cell.items()} | {axis: part}
        allowed.append(part[find_fits(grid, index, axes, strategy).allowed.reshape(part.size)])
    return np.concatenate(allowed)


def is_allowed(grid: Grid, index: Index, cell: Cell, strategy: Strategy | None = None) -> bool:
    """True if nothing forbids one cell."""
    # Any axis would do: the only value tried is the cell's own.
    return bool(list_allowed(grid, index, cell, "pe", np.array([cell["pe"]]), strategy).size)


def _spread(values: Any, shape: tuple[int, ...], choices: int) -> NDArray[Any]:
    """Broadcast to [choice, *shape]; leading dimensions of choices may be absent."""
    array = np.asarray(values)
    return np.broadcast_to(array, (*array.shape[:choices], *shape)).reshape(-1, *shape)


def find_smallest_group(grid: Grid, index: Index) -> int | None:
    """Smallest number of PEs that can share a replica; 0 if no number is allowed.

    None if groups have one PE or several degrees, or if the samples do not fit the model. The
    groups of a hybrid divide its PEs; a group of all PEs may also be any power of two up to the
    machine's size.
    """
    strategy = grid.strategy(index)
    if len(strategy.parts) != 1 or grid.find_blocks(index):
        return None
    # The grid has one configuration, and so one PE count.
    found = {*list_divisors(int(grid.axes["pe"][0]))}
    if not strategy.hybrid:
        found |= {2**n for n in range(grid.systems[index[2]].most_pes.bit_length())}
    sizes = np.array(sorted(found), float)
    axis = {"group" if strategy.hybrid else "pe": sizes}
    case = grid.case(index, grid.axes | axis, replace(strategy, group=None))
    if case is None:
        return None
    allowed = find_allowed(np.asarray(find_limits(case)))
    # With `segments=best`, a size is allowed if any number of segments is.
    has_choice = allowed.any(axis=tuple(range(len(case.choices))))
    fits = np.broadcast_to(np.ravel(has_choice), sizes.shape)
    return next((int(size) for size in sizes[fits]), 0)
