"""The plan of a sweep in words, before it runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from grids.grid import Grid
from grids.notes import list_warnings
from grids.outputs import INTERVALS
from grids.reading.units import format_quantity
from sweep.cube.extension import find_missing_blocks
from sweep.cube.plan import Plan, plan_cube
from sweep.engine.duration import estimate_duration
from sweep.engine.progress import Advance, Progress, count_cells
from sweep.engine.resources import blocks_at_once, needed_memory
from sweep.engine.start import find_start
from sweep.show.columns import format_cell, format_duration
from sweep.show.visible import tell

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


def outline_plan(grid: Grid, plan: Plan, workers: int) -> str:
    """Describe what will be computed, and what it takes."""
    sizes = " x ".join(
        f"{size:,} rows of {dim}" if dim in grid.rows else _count(size, dim)
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
            f"  time    {_describe_time(grid, plan, workers)}",
        ]
    )


def _count(size: int, dim: str) -> str:
    """Count the values of an axis, such as `3 data sets`."""
    singular, plural = NOUNS.get(dim, (dim, dim))
    return f"{size:,} {singular if size == 1 else plural}"


def _describe_time(grid: Grid, plan: Plan, workers: int) -> str:
    """Describe the range of the time, and what makes it longer."""
    # Workers are processes of one core; without any, XLA computes on two.
    cores = max(workers, CORES)
    ends = (format_duration(time, digits=2) for time in estimate_duration(grid, plan, cores))
    remarks = [f"roughly {' to '.join(ends)} on {cores} cores"]
    if any(name in INTERVALS for name in grid.spec.outputs):
        remarks.append("percentiles take draws")
    if any(strategy.placed for strategy in grid.strategies):
        remarks.append("placements come first")
    return "; ".join(remarks)


def _describe_workers(grid: Grid, plan: Plan, workers: int) -> str:
    """Say how many blocks are in memory at once, and in which processes."""
    if workers:
        return (
            f"for {workers} worker{'s' if workers > 1 else ''} with a block each, and this process"
        )
    count = blocks_at_once(grid, plan)
    return f"with {count} block{'s' if count > 1 else ''} at a time"


def preview_sweep(url: str, grid: Grid, workers: int, overwrite: bool, extend: bool) -> str:
    """Describe a sweep into the store at `url`, without writing. InputError: as for the sweep."""
    cube, extension = find_start(url, grid, "r", overwrite, extend)
    if not extend:
        return outline_plan(grid, plan_cube(grid), workers)
    if cube is None or extension is None:
        return f"{url}: nothing to add"
    # Blocks at the old edge gain cells, so they are computed anew.
    missing = np.flatnonzero(find_missing_blocks(cube, extension)).tolist()
    gains = "; ".join(_describe_gain(*gain) for gain in extension.added.items())
    computed = sum(count_cells(extension.plan, block) for block in missing)
    return "\n".join(
        [
            outline_plan(extension.grid, extension.plan, workers),
            f"  new     {gains}: {extension.plan.cells - cube.plan.cells:,} cells",
            f"  to do   {len(missing):,} blocks, {computed:,} cells",
        ]
    )


def _describe_gain(dim: str, values: Sequence[object]) -> str:
    shown = [format_cell(value) for value in values]
    if len(shown) > SHOWN:
        shown = [shown[0], "...", f"{shown[-1]} ({len(shown)} values)"]
    return f"{dim} {', '.join(shown)}"


def announce(grid: Grid, workers: int, inner: Progress) -> Progress:
    """Print the plan and warnings about model files, then show progress as `inner` does."""

    @contextmanager
    def progress(plan: Plan, done: int) -> Iterator[Advance]:
        # Called only when there is work: a complete cube needs no announcement.
        tell(outline_plan(grid, plan, workers))
        for warning in list_warnings(grid):
            tell(f"paradl: warning: {warning}")
        if done:
            tell(f"resumed: {done:,} of {plan.blocks:,} blocks were done")
        with inner(plan, done) as advance:
            yield advance

    return progress
