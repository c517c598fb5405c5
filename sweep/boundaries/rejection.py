"""Explain why a strategy is allowed nowhere, and which single change would allow it.

The explanation is of the cell nearest to being allowed: that with the fewest reasons, then the most
PEs, then the least memory. Every proposed change was tried by itself, and the oracle allows it.
"""

from dataclasses import replace

import numpy as np

from paradl.grids.entries.parameters import DEFAULTS
from paradl.grids.grid import Grid, Index
from paradl.grids.inputs.case import build_nearest_case
from paradl.kernels.divisors import list_divisors
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.sweep.answers.numbers import number
from paradl.sweep.answers.reasons import list_reasons
from paradl.sweep.answers.types.questions import Rejection
from paradl.sweep.boundaries.fits import WINDOWS, Cell, Fit, find_fits, is_allowed, list_allowed
from paradl.sweep.cells.space import (
    Space,
    look_up_capacity,
    take_cell,
    thin_values,
    write_cell,
)
from paradl.sweep.configurations.fitting import find_memory_chance, find_needed

# Values tried along axes other than PE counts and batches.
OTHERS = 4
# The largest batch that is tried: where memory grows with samples, far fewer fit.
MOST_SAMPLES = 2**40


def explain_rejection(space: Space, index: Index) -> Rejection:
    """Describe the nearest cell of a strategy that is allowed nowhere, and changes that allow it.

    Keys: `pe` and the other axes of that cell; `limit`: what forbids it; `memory` and
    `memory_capacity` [B], None if unknown, and the probability that it `fits`; `changes`: values of
    single parameters that would allow it: the largest `batch`, the nearest `pe`, the smallest
    `group`, `recompute: full`, the least `memory_capacity` of a PE [B].
    """
    thinned = {
        name: thin_values(values, WINDOWS.get(name, OTHERS)) for name, values in space.axes.items()
    }
    fit = find_fits(space.grid, index, thinned)
    at = _find_nearest(fit)
    cell = take_cell(fit.axes, at)
    memory = float(fit.memory[at])
    is_large = int(fit.limit[at]) & FORBIDS == Limit.MEMORY
    changes = {
        "batch": find_batch(space.grid, index, cell),
        "pe": find_pe(space.grid, index, cell),
        "group": _find_group(space.grid, index, cell),
        "recompute": _try_recompute(space.grid, index, cell),
        "memory_capacity": find_needed(space.grid, index, cell, memory) if is_large else None,
    }
    return {
        **write_cell(cell),
        "limit": list_reasons(fit.limit[at]),
        "memory": memory if np.isfinite(memory) else None,
        "memory_capacity": look_up_capacity(space.grid, index, cell),
        "fits": find_memory_chance(space.grid, index, cell, memory),
        "changes": {name: value for name, value in changes.items() if value is not None},
    }


def find_batch(grid: Grid, index: Index, cell: Cell) -> int | None:
    """Largest allowed batch below that of the cell, else the smallest above it; None: none."""
    step = _find_batch_step(grid, index, cell)
    count = cell["batch"] // step
    halves = step * np.array([max(1.0, float(count // 2**n)) for n in range(41)])
    below = list_allowed(grid, index, cell, "batch", halves[halves <= cell["batch"]])
    if below.size:
        # The half above n is 2 n or 2 n + 1, and was forbidden.
        most = below[-1] / step
        return _bisect_batch(grid, index, cell, (most, min(2 * most + 1, count)), step)
    # Below one step is half of one.
    doubles = np.array([max(count, 0.5) * 2.0**n for n in range(1, 21)])
    tried = step * doubles
    above = list_allowed(grid, index, cell, "batch", tried[tried <= MOST_SAMPLES])
    if not above.size:
        return None
    least = above[0] / step
    return _bisect_batch(grid, index, cell, (least, least / 2), step)


def _find_batch_step(grid: Grid, index: Index, cell: Cell) -> float:
    """Number of which allowed batches are multiples: of a layout's micro-batches, else 1."""
    if not grid.find_blocks(index):
        return 1.0
    axes = {name: np.array([value], float) for name, value in cell.items()}
    case = grid.build(build_nearest_case, index, axes, None)
    assert case is not None  # its samples fit
    layout = case.blocks.layouts
    replicas = layout.data * layout.flushes if grid.spec.scaling == "strong" else 1
    strategy = grid.strategy(index)
    if "micro" not in {*strategy.stated, *cell, *grid.spec.parameters}:
        given = cell.get("segments", grid.spec.parameters.get("segments", DEFAULTS["segments"]))
        segments = strategy.segments or np.where(layout.pipeline > 1, given, 1)
        return number(replicas * segments)
    # Chunks take turns by as many micro-batches as there are stages.
    passes = np.where(layout.chunks > 1, layout.passes, 1)
    return number(layout.micro * replicas * passes)


def _bisect_batch(
    grid: Grid, index: Index, cell: Cell, ends: tuple[float, float], step: float
) -> int:
    """Allowed batch nearest to a forbidden one. ends: one allowed, one forbidden, in steps."""
    allowed, forbidden = ends
    # Allowed batches are contiguous: too few samples forbid from below, memory from above.
    while abs(forbidden - allowed) > 1:
        tried = np.unique(np.linspace(allowed, forbidden, WINDOWS["batch"]).round())
        row = list_allowed(grid, index, cell, "batch", step * tried) / step
        allowed = row[-1] if forbidden > allowed else row[0]
        beyond = tried[tried > allowed] if forbidden > allowed else tried[tried < allowed]
        if not beyond.size:
            break
        forbidden = beyond[0] if forbidden > allowed else beyond[-1]
    return int(step * allowed)


def find_pe(grid: Grid, index: Index, cell: Cell) -> int | None:
    """Allowed PE count nearest to that of the cell; None: none is allowed.

    Powers of two are tried, and doubling and halving; strategies without a choice also get all
    counts that would be nearer.
    """
    count, most = int(cell["pe"]), grid.systems[index[2]].most_pes
    # Powers below 1 halve the count, down to one.
    powers = 2.0 ** np.arange(-count.bit_length(), most.bit_length())
    known = np.union1d([*(count * powers), float(most)], powers)
    allowed = list_allowed(
        grid, index, cell, "pe", known[(known <= most) & (known % 1 == 0) & (known >= 1)]
    )
    nearest = _take_nearest(allowed, count)
    # Each PE count has groups or layouts of its own to choose from, which is slow.
    is_slow = "group" in grid.strategy(index).choices or grid.find_blocks(index)
    if is_slow or nearest is None:
        return nearest
    near = abs(nearest - count)
    between = np.arange(max(1, count - near), min(most, count + near) + 1, dtype=float)
    return _take_nearest(list_allowed(grid, index, cell, "pe", between), count)


def _take_nearest(values: Floats, count: int) -> int | None:
    return int(values[np.argmin(np.abs(values - count))]) if values.size else None


def _find_group(grid: Grid, index: Index, cell: Cell) -> int | None:
    """Smallest allowed group of a hybrid; None: no group is allowed, or none can be chosen."""
    strategy = grid.strategy(index)
    if not strategy.hybrid or strategy.group == "best" or "group" in grid.spec.axes.swept:
        return None
    # From 2 on: a group of one PE divides nothing.
    for size in list_divisors(int(cell["pe"]))[1:]:
        if is_allowed(grid, index, cell, replace(strategy, group=size)):
            return int(size)
    return None


def _try_recompute(grid: Grid, index: Index, cell: Cell) -> str | None:
    """`full` if recomputing layers is enough, else None."""
    if grid.spec.oracle == "paper" or grid.spec.recompute == "full":
        return None
    recomputing = replace(grid, spec=grid.spec.model_copy(update={"recompute": "full"}))
    return "full" if is_allowed(recomputing, index, cell) else None


def _find_nearest(fit: Fit) -> tuple[int, ...]:
    """Position of the cell that is nearest to being allowed."""
    pe = fit.axes["pe"].reshape(-1, *[1] * (fit.limit.ndim - 1))
    counts = np.broadcast_to(pe, fit.limit.shape)
    memory = np.nan_to_num(fit.memory, nan=np.inf)
    # lexsort sorts by its last key first. Among equals prefer most PEs: a user has a budget of PEs.
    order = np.lexsort((memory.ravel(), -counts.ravel(), fit.reasons.ravel()))
    return tuple(int(n) for n in np.unravel_index(int(order[0]), fit.limit.shape))
