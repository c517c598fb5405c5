"""The store: a self-contained Zarr v3 group with the cube.

Every variable is cut into the plan's shards. A block's data are written before its done-mark, so
that a killed run loses no marked block. Every chunk has a checksum (`verification.py` reads them
all). Chunks of nothing but fill values are also written, since otherwise a lost file would read as
an answer. The root attributes have the whole spec, so that any process that can reach the store can
compute any of its blocks.
"""

import os
from asyncio import gather
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from socket import gethostname
from threading import Event, Lock, Thread
from typing import Any, TypeAlias

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.metadata import ArrayV3Metadata
from zarr.core.sync import sync

from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.object_store import is_remote, translate_failures
from paradl.sweep.cube.plan import (
    DONE,
    NOT_SERIAL,
    SERIAL,
    STATISTIC,
    SUMMARY,
    Plan,
    Region,
    count_cell_bytes,
    find_part,
    find_shape,
    lay_out,
    list_layered,
)
from paradl.sweep.cube.provenance import check_code
from paradl.sweep.cube.root import (
    ANEW,
    METADATA,
    UNREADABLE,
    Mode,
    open_group,
    read_grid,
    read_json,
    read_plan,
)
from paradl.sweep.cube.variables import Arrays, list_columns, list_coordinates
from paradl.sweep.errors import RunError

Array: TypeAlias = "zarr.Array[Any]"


@dataclass(frozen=True, eq=False)
class Cube:
    """An open store with its grid and plan.

    arrays: those that blocks are written to, by name. statistics: those of the summary, in order.
    folder: facts of the store's folder as it was opened; None for an object store.
    """

    url: str
    group: zarr.Group
    grid: Grid
    plan: Plan
    arrays: Mapping[str, Array]
    statistics: tuple[str, ...]
    folder: os.stat_result | None

    @property
    def location(self) -> str:
        """URL, or absolute path of the folder, for processes with another working directory."""
        return self.url if is_remote(self.url) else str(Path(self.url).absolute())

    @property
    def identity(self) -> str:
        """Id that tells this cube from any other at the same location, earlier or later."""
        return str(self.group.attrs.get("paradl_id", ""))

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of paradl, its code and its libraries that made the cube."""
        versions = read_json(self.url, self.group, "paradl_versions")
        return {name: str(version) for name, version in versions.items()}

    def read_done(self) -> NDArray[np.bool_]:
        """Return which blocks are complete [blocks]."""
        try:
            return np.asarray(self.arrays[DONE][...]).astype(bool).reshape(-1)
        except UNREADABLE as error:
            raise RunError(
                f"{self.url}: the marks of finished blocks cannot be read ({error}); "
                f"list damaged files with: paradl status {self.url} --verify",
                page="damaged-store",
            ) from error

    def expect_in_place(self) -> None:
        """Raise RunError if the store is no longer where it was opened: Zarr would make its folders
        anew, or write into another store.
        """
        if self.folder is None:
            return
        with suppress(OSError, InputError):
            os.stat(Path(self.location, METADATA))  # a deletion may have just begun
            if os.path.samestat(os.stat(self.location), self.folder):
                return
            # Some network file systems change the numbers that tell folders apart.
            if open_cube(self.url).identity == self.identity:
                return
        raise RunError(
            f"{self.url}: the store was moved or deleted during this run, "
            f"as {gethostname()} sees it; {ANEW}"
        )

    def write(self, block: int, arrays: Arrays) -> None:
        """Write a block's variables and summary. RunError: the store is no longer there."""
        self.expect_in_place()

        async def write_all() -> None:
            writes = (self._write(name, block, values) for name, values in arrays.items())
            # All at once: one is written while another is compressed. Errors after all have ended.
            ends = await gather(*writes, return_exceptions=True)
            for error in filter(None, ends):
                raise error

        # Without fsync, which protects against power cuts but not kills; `status --verify` finds
        # what a power cut has damaged.
        sync(write_all())

    async def _write(self, name: str, block: int, values: NDArray[Any]) -> None:
        """Write a block's part of one array."""
        array, place = self.arrays[name].async_array, self.find_place(name, block)
        try:
            await array.setitem(place, values)
        # In a shard, Zarr reads what it replaces, which was damaged; or it is a folder.
        except (ValueError, RuntimeError, IsADirectoryError):
            # Nothing is lost, since the block has no mark, and its whole part is written.
            await array.store_path.store.delete(self.name_file(name, block))
            await array.setitem(place, values)

    def mark(self, blocks: Sequence[int], done: bool = True) -> None:
        """Mark blocks as complete or not, from one process. RunError: the store is gone."""
        self.expect_in_place()
        if blocks:
            # Zarr reads a file of marks and writes it: two processes would undo each other's.
            place = np.unravel_index(np.asarray(blocks), self.plan.grid)
            self.arrays[DONE].set_coordinate_selection(place, np.uint8(done))

    def fits(self, block: int) -> bool:
        """Return whether the block's data set fits its model; otherwise nothing is written."""
        model, dataset, *_ = self.plan.find_position(block)  # a block has one of each
        return self.grid.table(model, dataset) is not None

    def list_arrays(self, block: int) -> list[str]:
        """List the arrays that have a file of this block once it is done."""
        if not self.fits(block):
            return []
        position = zip(self.plan.dims, self.plan.find_position(block), strict=True)
        first = all(at == 0 for dim, at in position if dim in NOT_SERIAL)
        return [name for name in self.arrays if name != DONE and (first or name != SERIAL)]

    def find_place(self, name: str, block: int) -> Region:
        """Return the part of an array that belongs to a block."""
        return find_part(name, self.plan, self.plan.find_region(block), len(self.statistics))

    def name_file(self, name: str, block: int) -> str:
        """Return the store's file with this part; only files of marks are shared by blocks."""
        return name_file(self.arrays[name], self.find_place(name, block))


# Marks are collected for this long. On an object store a file takes two requests of tens of
# milliseconds; on the other hand, a kill loses blocks whose marks are not written yet.
MARK_SECONDS = 0.2


@contextmanager
def collect_marks(cube: Cube) -> Iterator[Callable[[int], None]]:
    """Yield a function that marks a block; all are written when the context ends, by an error, too.

    OSError, RunError: writing failed, raised at the next mark or at the end.
    """
    waiting: list[int] = []
    failures: list[Exception] = []
    lock, ended = Lock(), Event()

    def write_marks() -> None:
        # Locked during the write, so that a block reported meanwhile is not cleared unwritten.
        with lock, translate_failures(cube.url):
            cube.mark(waiting)
            # Cleared last: after a failure, they are tried again when the context ends.
            waiting.clear()

    def write_now_and_then() -> None:  # runs in a thread, whose exceptions would be lost
        try:
            while not ended.wait(MARK_SECONDS):
                if waiting:
                    write_marks()
        except (OSError, RunError) as error:
            failures.append(error)

    def mark(block: int) -> None:
        if failures:
            raise failures[0]
        with lock:
            waiting.append(block)

    # The process need not wait for it, since the last marks are written below.
    Thread(target=write_now_and_then, daemon=True).start()
    try:
        yield mark
    finally:
        ended.set()
        # Also after Ctrl-C or a failure: all reported blocks are in the store.
        try:
            write_marks()
        finally:
            # Lest the thread marks them yet: of a store that was moved, blocks may lack files.
            waiting.clear()


def list_labels(cube: Cube) -> Arrays:
    """Return the values along all dimensions of a store, by the paths of their arrays."""
    columns = {name: values for name, (_, values) in list_columns(cube.grid).items()}
    statistics = {STATISTIC: np.array(cube.statistics, object)}
    return list_coordinates(cube.grid) | columns | statistics


def name_file(array: Array, place: Region) -> str:
    """Return the store's file of the shard or chunk at which a part of an array starts."""
    starts = [extent.start for extent in place] + [0] * (array.ndim - len(place))
    sizes = array.shards or array.chunks
    position = tuple(start // size for start, size in zip(starts, sizes, strict=True))
    return f"{array.path}/{array.metadata.encode_chunk_key(position)}"


def open_cube(url: str, mode: Mode = "r") -> Cube:
    """Open the cube at `url`. InputError: there is none, or something else."""
    group = open_group(url, mode)
    if group is None:
        advice = "make one with: paradl sweep SPEC STORE"
        raise InputError("no cube here", where=url, advice=advice, page="no-cube")
    return read_cube(url, group)


def read_cube(url: str, group: zarr.Group) -> Cube:
    """Read the cube of an open group. InputError: it is damaged, or of another format."""
    grid = read_grid(url, group)
    shard, layers = read_plan(url, group, len(grid.dims))
    # Sizes as they were when the store was created, whatever they would be today.
    cell_bytes = count_cell_bytes(grid)
    plan = Plan(grid.dims, grid.shape, shard, cell_bytes, layers, list_layered(grid))
    members = _list_members(group)
    # From an attribute, which the root's metadata have, instead of another file.
    meanings = members[STATISTIC].attrs.get("meanings") if STATISTIC in members else None
    statistics = tuple(map(str, meanings)) if isinstance(meanings, dict) else ()
    sizes = dict(zip(grid.dims, grid.shape, strict=True)) | {STATISTIC: len(statistics)}
    sizes |= {name: values.size for name, (_, values) in list_columns(grid).items()}
    for name, size in sizes.items():  # a forged one may be huge
        _expect_array(url, members, name, (size,))
    arrays = _open_arrays(url, members, grid, plan, len(statistics))
    folder = None if is_remote(url) else os.stat(url)
    return Cube(url, group, grid, plan, arrays, statistics, folder)


# Opening reads and checks the root's metadata, which would be slow for every block. Four cubes,
# since a scheduler's workers may serve several runs.
@lru_cache(maxsize=4)
def open_shared_cube(url: str, identity: str) -> Cube:
    """Return a worker's open cube. identity: tells an overwritten store from the old one.

    RunError: this process cannot reach it, or runs other code than the one that began it.
    """
    # Before it is opened: Zarr would make the folder.
    if not is_remote(url) and not Path(url).is_dir():
        raise _explain_unseen(url, "there is no such folder")
    try:
        cube = open_cube(url, "r+")
    except InputError as error:
        raise _explain_unseen(url, str(error)) from error
    if cube.identity != identity:
        raise _explain_unseen(url, "there is another cube")
    differs = check_code(cube.versions)
    if differs:
        raise RunError(f"a worker runs other code than the one that began {url}: {differs}")
    return cube


def _explain_unseen(url: str, why: str) -> RunError:
    return RunError(
        f"{url}: the worker on {gethostname()} cannot reach this sweep's store ({why}); "
        "give a path that this machine and all workers share, or the URL of an object store"
    )


def _list_members(group: zarr.Group) -> dict[str, Array]:
    """Return all arrays by their paths, as the root's metadata describe them.

    Zarr gives them one by one, each by a task of another thread: a cube with all outputs then opens
    in 28 ms of processor time, and not in 19 (2026-11).
    """
    consolidated = group.metadata.consolidated_metadata
    assert consolidated is not None
    with zarr.config.set({"array.write_empty_chunks": True}):  # arrays remember it
        return {
            path: zarr.Array(zarr.AsyncArray(metadata, group.store_path / path))
            for path, metadata in consolidated.flattened_metadata.items()
            if isinstance(metadata, ArrayV3Metadata)
        }


def _open_arrays(
    url: str, members: dict[str, Array], grid: Grid, plan: Plan, statistics: int
) -> dict[str, Array]:
    """Return the arrays that blocks are written to, if no two blocks share a file."""
    arrays = {}
    for name in (*grid.spec.outputs, SERIAL, SUMMARY, DONE):
        array = _expect_array(url, members, name, find_shape(name, plan, statistics))
        shard = tuple(part for _, part in lay_out(name, plan, statistics).values())
        # The number of marks per file may differ from today's, since it is read from the array.
        if name != DONE and (array.shards or array.chunks) != shard:
            raise _report_damage(url, name)
        arrays[name] = array
    return arrays


def _expect_array(url: str, members: dict[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    array = members.get(name)
    if array is None or array.shape != shape:
        raise _report_damage(url, name)
    return array


def _report_damage(url: str, name: str) -> InputError:
    what = f"damaged: the array {name!r} is missing, or not as its spec and plan say"
    return InputError(what, where=url, advice=ANEW)


def get_array(group: zarr.Group, name: str) -> Array:
    """Return the array of a group at a path."""
    member = group[name]
    assert isinstance(member, zarr.Array), name
    return member
