"""The engine: from a spec to a finished cube, resuming what an earlier run left.

`plan` decides, this file executes: in this process, or on Dask's workers (`cluster.py`). Either way a
block is the same function, so that the cube is the same bit for bit.
"""

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from grids.errors import InputError
from grids.grid import Grid
from grids.spec import read_spec, validated
from sweep.accessor import register
from sweep.block import run_block
from sweep.difference import difference
from sweep.errors import RunError
from sweep.lock import exclusive
from sweep.plan import Plan
from sweep.progress import Progress, silent
from sweep.resources import check_memory
from sweep.store import Cube, create, exists, open_cube, plan_of

Source = str | Path | Mapping[str, object]


@dataclass(frozen=True)
class Where:
    """Where blocks are computed: this process, so many local ones, or a Dask scheduler's workers."""

    workers: int = 0
    scheduler: str | None = None


def run(
    spec: Source,
    store: str | Path,
    *,
    overwrite: bool = False,
    workers: int = 0,
    scheduler: str | None = None,
    progress: Progress = silent,
) -> xr.Dataset:
    """Sweep a design space into a Zarr store, or finish a sweep that was cut short.

    spec: a YAML file, or the same as a mapping. workers: local processes (0: this one); scheduler:
    the address of a running Dask scheduler. Returns the cube, opened lazily. InputError: a bad spec, or
    a store that holds something else; RunError: the run failed, and can be resumed.
    """
    grid = read_grid(spec)
    sweep(grid, str(store), overwrite, Where(workers, scheduler), progress)
    return open_dataset(store)


def read_grid(spec: Source) -> Grid:
    """The design space of a spec file or mapping."""
    if isinstance(spec, Mapping):
        return Grid.from_spec(validated(dict(spec), "spec"))
    path = Path(spec)
    found, document = read_spec(path)
    try:
        return Grid.from_spec(found, path.parent)
    except InputError as error:
        raise InputError(str(error), where=str(document.path)) from None


def open_dataset(store: str | Path) -> xr.Dataset:
    """A cube as a labelled Dataset, read lazily."""
    open_cube(str(store))  # says in one message what is wrong with a store that is none
    register()
    dataset: xr.Dataset = xr.open_zarr(str(store))
    return dataset


def sweep(grid: Grid, url: str, overwrite: bool, where: Where, progress: Progress) -> None:
    """Compute all blocks of the cube at `url` that are not done."""
    plan = plan_of(grid)
    check_memory(plan, max(where.workers, 1))
    with _failures(url), _cube(url, grid, plan, overwrite) as cube:
        done = cube.done()
        todo = np.flatnonzero(~done).tolist()
        with progress(cube.plan, int(done.sum())) as advance:
            for block in _executed(cube, todo, where):
                advance(block)


@contextmanager
def _cube(url: str, grid: Grid, plan: Plan, overwrite: bool) -> Iterator[Cube]:
    """The store for this grid, new or resumed, held against other runs."""
    fresh = overwrite or not exists(url)
    if overwrite:
        exists(url)  # refuses what is not a cube: only a cube may be overwritten
    if not fresh:
        with exclusive(url):
            yield _resumed(url, grid)
        return
    cube = create(url, grid, plan)
    with exclusive(url):
        yield cube


def _resumed(url: str, grid: Grid) -> Cube:
    cube = open_cube(url)
    differs = difference(cube.grid.definition(), grid.definition())
    if differs:
        raise InputError(
            f"the store holds another sweep: {differs}",
            where=url,
            advice="sweep into another store, or give --overwrite",
        )
    return cube


def _executed(cube: Cube, blocks: list[int], where: Where) -> Iterable[int]:
    """The blocks, as they are done."""
    if where.workers or where.scheduler:
        from sweep.cluster import on_cluster

        return on_cluster(cube, blocks, where.workers, where.scheduler)
    return (run_block(cube.url, cube.identity, block) for block in blocks)


@contextmanager
def _failures(url: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"writing failed ({error.strerror or error})"
        raise RunError(
            f"{url}: {what}; blocks that are done are kept: mend it and run the same command again"
        ) from error
