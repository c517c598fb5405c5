"""The engine: from a spec to a finished cube, resuming what an earlier run left.

`plan` decides, this file executes: in this process, or on Dask's workers (`dask_executor.py`).
Either way a block is the same function, so that the cube is the same bit for bit.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paradl.grids.grid import Grid, Source
from paradl.grids.grid import read_grid as read_grid
from paradl.grids.reading.errors import InputError, shorten
from paradl.sweep.cube.checked_store import check_reads
from paradl.sweep.cube.creation import Extension, create_cube, extend_cube, plan_extension
from paradl.sweep.cube.difference import describe_difference, describe_other_changes
from paradl.sweep.cube.lock import hold_store
from paradl.sweep.cube.object_store import locate_store
from paradl.sweep.cube.plan import Plan, plan_cube
from paradl.sweep.cube.provenance import check_code
from paradl.sweep.cube.root import Mode, is_unfinished, open_group, remove_partial
from paradl.sweep.cube.store import Cube, collect_marks, open_cube, read_cube
from paradl.sweep.cube.variables import index_rows
from paradl.sweep.engine.block import Execute, run_blocks
from paradl.sweep.engine.progress import Progress, follow, silent
from paradl.sweep.engine.resources import check_memory
from paradl.sweep.errors import RunError, explain_failure

if TYPE_CHECKING:
    import xarray as xr


def find_start(
    url: str, grid: Grid, mode: Mode, overwrite: bool, extend: bool
) -> tuple[Cube | None, Extension | None, Plan]:
    """The cube and extension that a sweep begins from, and its plan. InputError: there is none."""
    if overwrite and extend:
        raise InputError(
            "expected one of the two, got both",
            where="overwrite, extend",
            advice="extend keeps what is stored, overwrite starts anew",
        )
    # To write ("r+") the caller holds the store: opened so, Zarr makes a folder that is not there.
    group = open_group(url, mode)
    cube = None if overwrite or group is None or is_unfinished(group) else read_cube(url, group)
    growth = _find_growth(cube, grid, url) if extend else None
    if cube is not None and not extend:
        _check_same(cube, grid)
    if growth is not None:
        return cube, growth, growth.plan
    # A cube keeps its own plan, which an extension may have cut finer.
    return cube, None, plan_cube(grid) if cube is None else cube.plan


def _find_growth(cube: Cube | None, grid: Grid, url: str) -> Extension | None:
    """The extension of a cube to the grid, None where there is nothing to add."""
    if cube is None:
        raise InputError(
            "no cube here to extend", where=url, advice="leave extend=True out to make one"
        )
    extension = plan_extension(cube, grid)
    if not extension.added:
        return None
    expect_same_code(cube)
    return extension


def _check_same(cube: Cube, grid: Grid) -> None:
    """Refuse a store of other cells."""
    differs = describe_difference(cube.grid, grid)
    if differs:
        only_more = not describe_other_changes(cube.grid, grid)
        raise InputError(
            f"the store holds another sweep: {differs}",
            where=cube.url,
            advice=("give extend=True to add them, " if only_more else "")
            + "sweep into another store, or give overwrite=True",
            page="another-sweep",
        )


def expect_same_code(cube: Cube) -> None:
    """Refuse to mix the answers of two versions in one cube: they may differ in their last bits."""
    differs = check_code(cube.versions)
    if differs:
        raise InputError(
            f"the store was started by other code: {differs}",
            where=cube.url,
            advice="finish it with the same versions, or give overwrite=True",
            page="other-code",
        )


@dataclass(frozen=True)
class Where:
    """The place where blocks are computed: this process, local ones, or a scheduler's workers."""

    workers: int = 0
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.workers, int) or self.workers < 0:
            raise InputError(f"workers: expected 0 or more, got {self.workers!r}")
        # Empty as of a shell's variable that is not set: without this, all would run here.
        if self.scheduler is not None and not self.scheduler.strip():
            raise InputError(
                "expected an address, got an empty text",
                where="scheduler",
                advice="such as tcp://HOST:8786",
            )
        if self.workers and self.scheduler:
            raise InputError(
                "expected local workers or a scheduler, got both",
                where="workers, scheduler",
                advice="leave one out: a scheduler has its own workers",
            )


def run(
    spec: Source,
    store: str | Path,
    *,
    overwrite: bool = False,
    extend: bool = False,
    reduce_only: bool = False,
    workers: int = 0,
    scheduler: str | None = None,
    progress: Progress | bool = False,
) -> "xr.Dataset":
    """Sweep a design space into a Zarr store, or finish a sweep that was cut short.

    spec: a YAML file, or the same as a mapping. extend: add the values that the axes of the cube
    lack, and compute the new cells alone. reduce_only: keep summaries alone, no cells.
    workers: local processes (0: this one); scheduler: the address of a running Dask scheduler.
    progress: True shows a bar in a terminal or notebook, elsewhere a line every ten seconds; or a
    function of a plan and its finished blocks that hears of each further block.
    Returns the cube, opened lazily. InputError: a bad spec, or a store that holds something else;
    RunError: the run failed, and can be resumed.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> axes |= {"pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.run({"axes": axes}, "cube.zarr")
    >>> print(ds.paradl.efficiency.values.round(2).ravel())
    [1.   0.29 0.26]
    """
    url = locate_store(store)
    grid = read_grid(spec).drop_outputs() if reduce_only else read_grid(spec)
    if isinstance(progress, bool):
        progress = follow if progress else silent
    if not callable(progress):
        raise InputError(f"expected True or False, got {shorten(progress)}", where="progress")
    sweep(grid, url, overwrite, Where(workers, scheduler), progress, extend)
    return open_dataset(url)


def open_dataset(store: str | Path) -> "xr.Dataset":
    """A cube as a labelled Dataset, read lazily; parameters of rows select as axes do.

    InputError: no cube. RunError, when values are read: a file of a finished block is damaged.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> axes |= {"pe": [1, 8, 64], "batch": 32}
    >>> _ = paradl.run({"axes": axes}, "cube.zarr")
    >>> print(paradl.open_dataset("cube.zarr").paradl.speedup.values.round(1).ravel())
    [ 1.   2.3 16.5]
    """
    import xarray as xr  # late: pandas comes with it, and a sweep needs neither

    url = locate_store(store)
    cube = check_reads(open_cube(url))
    dataset: xr.Dataset = xr.open_zarr(cube.group.store, zarr_format=3)
    return index_rows(dataset, cube.grid)


def sweep(
    grid: Grid, url: str, overwrite: bool, where: Where, progress: Progress, extend: bool = False
) -> None:
    """Compute all blocks of the cube at `url` that are not done."""
    # Held before anybody looks: what is decided by is still so when it is written.
    with _translate_failures(url), hold_store(url):
        cube, more, plan = find_start(url, grid, "r+", overwrite, extend)
        if cube and not more:
            # Before workers start or anything is compiled: a finished cube answers at once.
            if cube.read_done().all():
                return
            expect_same_code(cube)
        if where.scheduler is None:  # else blocks are computed elsewhere
            check_memory(grid, plan, where.workers)
        remove_partial(url)  # what a killed run left
        # Before anything is made: a scheduler may not answer.
        with _open_executor(where) as execute:
            if cube is None:
                cube = create_cube(url, grid, plan)
            elif more:
                cube = extend_cube(cube, more)
            _fill(cube, execute, progress)
        if where.workers:  # which are gone: one may have ended while it wrote a block again
            remove_partial(url)


def _fill(cube: Cube, execute: Execute, progress: Progress) -> None:
    """Compute what is missing."""
    done = cube.read_done()
    with progress(cube.plan, np.flatnonzero(done)) as advance, collect_marks(cube) as mark:
        # A block is yielded only when its data are in the store: the mark always comes second.
        for block in execute(cube, map(int, np.flatnonzero(~done))):
            mark(block)
            advance(block)


def _open_executor(where: Where) -> AbstractContextManager[Execute]:
    """The function that runs blocks, and yields the number of each when it is done."""
    if not where.workers and not where.scheduler:
        return nullcontext(run_blocks)
    # Late: to import Dask takes time, and a sweep in this process has no use for it.
    from paradl.sweep.engine.dask_executor import connect_cluster

    return connect_cluster(where.workers, where.scheduler)


@contextmanager
def _translate_failures(url: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{url}: {explain_failure(error)}; finished blocks are kept: fix this and rerun the "
            "same command"
        ) from error
