"""The plan of a sweep in words, before it runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import Grid
from paradl.grids.notes import list_warnings
from paradl.grids.outputs import INTERVALS
from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import format_quantity
from paradl.sweep.cells.source import open_space
from paradl.sweep.cube.creation import find_missing_blocks
from paradl.sweep.cube.plan import Plan
from paradl.sweep.engine.progress import Advance, Progress
from paradl.sweep.engine.resources import blocks_at_once, estimate_duration, needed_memory
from paradl.sweep.engine.run import find_start
from paradl.sweep.text.columns import format_cell
from paradl.sweep.text.visible import tell

# Cores of this process that a plan counts on; workers have one each.
CORES = 2
# Singular and plural of an axis' values; parameters keep their names.
NOUNS = {
    "model": ("model", "models"),
    "dataset": ("data set", "data sets"),
    "system": ("system", "systems"),
    "strategy": ("strategy", "strategies"),
    "pe": ("PE count", "PE counts"),
    "batch": ("batch", "batches"),
}
SHOWN = 5  # values that an axis gains; more of them are counted


def outline_plan(grid: Grid, plan: Plan, workers: int, cells: int | None = None) -> str:
    """Describe a cube, and what it takes.

    cells: of the blocks to compute; None: of all blocks.
    """
    sizes = " x ".join(
        f"{format_count(size, 'row')} of {dim}" if dim in grid.rows else _count(size, dim)
        for size, dim in zip(plan.shape, plan.dims, strict=True)
    )
    pairs = len(grid.models) * len(grid.datasets)
    fitting = len(grid.fitting)
    idle = f" ({pairs - fitting} of {pairs} model-dataset pairs are incompatible and skipped)"
    return "\n".join(
        [
            f"{grid.spec.name}: {sizes}",
            f"  cells   {plan.cells:,}{idle if fitting < pairs else ''}",
            f"  bytes   {format_quantity(plan.nbytes, 'B')} before compression",
            f"  blocks  {plan.blocks:,} of {' x '.join(map(str, plan.shard))} cells",
            f"  memory  {format_quantity(needed_memory(grid, plan, workers), 'B')} at most, "
            f"{_describe_workers(grid, plan, workers)}",
            f"  time    {_describe_time(grid, plan, workers, cells)}",
        ]
    )


def _count(size: int, dim: str) -> str:
    """Count the values of an axis, such as `3 data sets`."""
    return format_count(size, *NOUNS.get(dim, (dim, dim)))


def _describe_time(grid: Grid, plan: Plan, workers: int, cells: int | None) -> str:
    """Describe the range of the time, and what makes it longer."""
    # Workers are processes of one core; without any, XLA computes on two.
    cores = max(workers, CORES)
    times = estimate_duration(grid, plan, cores, cells)
    ends = (format_quantity(time, "s", 2) for time in times)
    remarks = [f"roughly {' to '.join(ends)} on {format_count(cores, 'core')}"]
    if any(name in INTERVALS for name in grid.spec.outputs):
        remarks.append("percentiles take draws")
    if any(strategy.placed for strategy in grid.strategies):
        remarks.append("placements come first")
    return "; ".join(remarks)


def _describe_workers(grid: Grid, plan: Plan, workers: int) -> str:
    """Say how many blocks are in memory at once, and in which processes."""
    if workers:
        return f"for {format_count(workers, 'worker')} with a block each, and this process"
    return f"with {format_count(blocks_at_once(grid, plan), 'block')} at a time"


def preview_sweep(url: str, grid: Grid, workers: int, overwrite: bool, extend: bool) -> str:
    """Describe a sweep into the store at `url`, without writing. InputError: as for the sweep."""
    cube, extension, plan = find_start(url, grid, "r", overwrite, extend)
    if cube is None:
        return outline_plan(grid, plan, workers)
    if extension is None:
        missing = np.flatnonzero(~cube.read_done())
        if extend and not missing.size:
            return f"{url}: nothing to add"
        gains = []
    else:
        # Blocks at the old edge gain cells, so they are computed anew.
        missing = np.flatnonzero(find_missing_blocks(cube, extension))
        grid, added = extension.grid, plan.cells - cube.plan.cells
        gained = "; ".join(_describe_gain(*gain) for gain in extension.added.items())
        gains = [f"  new     {gained}: {format_count(added, 'cell')}"]
    computed = int(plan.count_cells(missing).sum())
    todo = f"  to do   {format_count(missing.size, 'block')}, {format_count(computed, 'cell')}"
    return "\n".join([outline_plan(grid, plan, workers, computed), *gains, todo])


def _describe_gain(dim: str, values: Sequence[object]) -> str:
    shown = [format_cell(value) for value in values]
    if len(shown) > SHOWN:
        shown = [shown[0], "...", f"{shown[-1]} ({len(shown)} values)"]
    return f"{dim} {', '.join(shown)}"


def announce(grid: Grid, workers: int, inner: Progress) -> Progress:
    """Print the plan and warnings about model files, then show progress as `inner` does."""

    @contextmanager
    def progress(plan: Plan, done: NDArray[np.intp]) -> Iterator[Advance]:
        # Called only when there is work: a complete cube needs no announcement.
        left = plan.cells - int(plan.count_cells(done).sum())
        tell(outline_plan(grid, plan, workers, left))
        mix = open_space(grid).describe_mix() or ()
        for warning in (*list_warnings(grid), *mix[:1]):
            tell(f"paradl: warning: {warning}")
        if done.size:
            tell(f"resumed: {done.size:,} of {format_count(plan.blocks, 'block')} done before")
        with inner(plan, done) as advance:
            yield advance

    return progress
