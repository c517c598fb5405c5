"""The plan of a sweep in words, before it runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from grids.grid import Grid
from grids.outputs import INTERVALS
from grids.reading.units import format_quantity
from sweep.cube.extension import find_missing_blocks
from sweep.cube.plan import Plan, plan_cube
from sweep.engine.progress import Advance, Progress, cells
from sweep.engine.resources import blocks_at_once, needed_memory
from sweep.engine.run import find_start
from sweep.show.columns import format_cell, format_duration
from sweep.show.visible import tell

# Seconds before the first block, and cells per second on two cores: rough ranges around single runs
# on a shared AMD EPYC. examples/billion.yaml, whose cells are not stored, took 46 million cells per
# second in total; 34 million stored cells with two percentiles 0.6 million per CPU-second.
START = (5.0, 25.0)
RATES = (10e6, 60e6)
PERCENTILE_RATES = (0.5e6, 3e6)
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
            f"  time    {_estimate_time(grid, plan, fitting / pairs)}",
        ]
    )


def _count(size: int, dim: str) -> str:
    """Count the values of an axis, such as `3 data sets`."""
    one, more = NOUNS.get(dim, (dim, dim))
    return f"{size:,} {one if size == 1 else more}"


def _estimate_time(grid: Grid, plan: Plan, share: float) -> str:
    """Estimate the time roughly, and say what prolongs it. share: of cells that are computed."""
    drawn = any(name in INTERVALS for name in grid.spec.outputs)
    slow, fast = PERCENTILE_RATES if drawn else RATES
    least, most = (
        start + plan.cells * share / rate for start, rate in zip(START, (fast, slow), strict=True)
    )
    remarks = []
    if drawn:
        remarks.append("percentiles need draws, which take about four times the CPU time")
    if any(strategy.placed for strategy in grid.strategies):
        remarks.append("placements are searched first, up to a minute per model and system")
    ends = " to ".join(format_duration(time, digits=2) for time in (least, most))
    return "; ".join([f"roughly {ends} on two cores", *remarks])


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
    missing = np.flatnonzero(find_missing_blocks(cube, extension)).tolist()
    gains = "; ".join(_describe_gain(*gain) for gain in extension.added.items())
    computed = sum(cells(extension.plan, block) for block in missing)
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
        for warning in grid.warnings:
            tell(f"paradl: warning: {warning}")
        if done:
            tell(f"resumed: {done:,} of {plan.blocks:,} blocks were done")
        with inner(plan, done) as advance:
            yield advance

    return progress
