"""The store: a Zarr v3 group that holds the cube, complete in itself.

Every variable is cut into the plan's shards. A block's data are written before its done-mark, so
that a killed run loses no block that is marked. Every chunk carries a checksum (`verification.py`
reads them all), and chunks of fill values alone are written, too: otherwise a lost file would read
as an answer. The root attributes hold the whole spec, so that any process that can reach the store
can compute any block of it.
"""

from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.sync import sync

from grids.grid import Grid
from grids.reading.errors import InputError
from sweep.cube.coordinates import list_columns, list_coordinates
from sweep.cube.layout import (
    DONE,
    NOT_SERIAL,
    SERIAL,
    STATISTIC,
    SUMMARY,
    find_part,
    lay_out,
)
from sweep.cube.object_store import is_remote
from sweep.cube.plan import Plan, Region, count_cell_bytes, list_layered
from sweep.cube.provenance import check_code
from sweep.cube.root import ANEW, UNREADABLE, Mode, open_group, read_grid, read_json, read_plan
from sweep.cube.variables import Arrays
from sweep.errors import RunError

Array: TypeAlias = "zarr.Array[Any]"


@dataclass(frozen=True, eq=False)
class Cube:
    """An open store with its grid and plan.

    arrays: what blocks are written to, by name. statistics: what its summary keeps, in that order.
    """

    url: str
    group: zarr.Group
    grid: Grid
    plan: Plan
    arrays: Mapping[str, Array]
    statistics: tuple[str, ...]

    @property
    def location(self) -> str:
        """The URL, or the folder's absolute path: as a process elsewhere finds it."""
        return self.url if is_remote(self.url) else str(Path(self.url).absolute())

    @property
    def identity(self) -> str:
        """The id that tells this cube from any other that stands, or stood, at the same place."""
        return str(self.group.attrs.get("paradl_id", ""))

    @property
    def versions(self) -> Mapping[str, str]:
        """The paradl that made the cube, its code, and what that computed with."""
        return read_json(self.url, self.group, "paradl_versions")

    def read_done(self) -> NDArray[np.bool_]:
        """Which blocks are complete [blocks]."""
        try:
            return np.asarray(self.arrays[DONE][...]).astype(bool).reshape(-1)
        except UNREADABLE as error:
            raise RunError(
                f"{self.url}: the marks of finished blocks cannot be read ({error}); "
                f"find what is damaged with: paradl status {self.url} --verify"
            ) from error

    def write(self, block: int, arrays: Arrays) -> None:
        """Write a block's variables and summary; whoever holds the store then marks it."""

        async def write_all() -> None:
            writes = (self._write(name, block, values) for name, values in arrays.items())
            # All arrays at once, on Zarr's event loop: one is written while another is compressed.
            # Where one fails, the others are waited for, and then it is told.
            ends = await gather(*writes, return_exceptions=True)
            for error in filter(None, ends):
                raise error

        # Written, and left to the system to bring to the disk: to wait for that (fsync) guards
        # against power cuts alone, not kills. `status --verify` finds what one has cost.
        sync(write_all())

    async def _write(self, name: str, block: int, values: NDArray[Any]) -> None:
        """Write a block's part of one array."""
        array, place = self.arrays[name].async_array, self.find_place(name, block)
        try:
            await array.setitem(place, values)
        except (ValueError, RuntimeError):  # Zarr reads what it replaces, and that was damaged
            # Nothing is lost: the block has no mark, and all of its part is written anew.
            await array.store_path.store.delete(self.name_file(name, block))
            await array.setitem(place, values)

    def mark(self, blocks: Sequence[int], done: bool = True) -> None:
        """Say that blocks are complete, or not: in one process at a time, marks share files."""
        if blocks:
            # Zarr reads a file of marks, changes some and writes all of it: of two processes at it,
            # one would undo the marks of the other.
            place = np.unravel_index(np.asarray(blocks), self.plan.grid)
            self.arrays[DONE].set_coordinate_selection(place, np.uint8(done))

    def find_position(self, block: int) -> tuple[int, ...]:
        """A block's place among the blocks along each dimension."""
        return tuple(map(int, np.unravel_index(block, self.plan.grid)))

    def fits(self, block: int) -> bool:
        """Whether the samples of the block's dataset fit its model: else nothing is written."""
        model, dataset, *_ = self.find_position(block)  # one of each in a block
        return self.grid.table(model, dataset) is not None

    def list_arrays(self, block: int) -> list[str]:
        """The arrays that have a file of this block's once it is done."""
        if not self.fits(block):
            return []
        position = zip(self.plan.dims, self.find_position(block), strict=True)
        first = all(at == 0 for dim, at in position if dim in NOT_SERIAL)
        return [name for name in self.arrays if name != DONE and (first or name != SERIAL)]

    def find_place(self, name: str, block: int) -> Region:
        """The part of an array that belongs to a block."""
        return find_part(name, self.plan, self.plan.find_region(block), len(self.statistics))

    def name_file(self, name: str, block: int) -> str:
        """The file, in the store, that holds this part; but for marks no other's."""
        return name_file(self.arrays[name], self.find_place(name, block))


def list_labels(cube: Cube) -> Arrays:
    """The values along all dimensions of a store, by the paths of their arrays."""
    columns = {name: values for name, (_, values) in list_columns(cube.grid).items()}
    statistics = {STATISTIC: np.array(cube.statistics, object)}
    return list_coordinates(cube.grid) | columns | statistics


def name_file(array: Array, place: Region) -> str:
    """The file, in its store, of the shard or chunk at which a part of an array starts."""
    starts = [extent.start for extent in place] + [0] * (array.ndim - len(place))
    sizes = array.shards or array.chunks
    position = tuple(start // size for start, size in zip(starts, sizes, strict=True))
    return f"{array.path}/{array.metadata.encode_chunk_key(position)}"


def open_cube(url: str, mode: Mode = "r") -> Cube:
    """The cube that `create.create_cube` made at `url`; InputError says what is there instead."""
    group = open_group(url, mode)
    if group is None:
        raise InputError("no cube here", where=url, advice="make one with: paradl sweep SPEC STORE")
    return read_cube(url, group)


def read_cube(url: str, group: zarr.Group) -> Cube:
    """The cube of a group that is open; InputError says what is wrong with it."""
    grid = read_grid(url, group)
    cut = read_plan(url, group, len(grid.dims))
    # As it was when the store was made, whatever today's sizes of shards are.
    sizes = cut.shard, cut.chunk, count_cell_bytes(grid), cut.layers
    plan = Plan(grid.dims, grid.shape, *sizes, list_layered(grid))
    statistics = _read_statistics(url, group)
    _check_axes(url, group, grid)
    arrays = _open_arrays(url, group, grid, plan, len(statistics))
    return Cube(url, group, grid, plan, arrays, statistics)


# Opening reads and checks the root's metadata: once a process and cube, and not once a block. More
# than one cube, as workers of a scheduler may serve several runs, one after the other.
@lru_cache(maxsize=4)
def open_shared_cube(url: str, identity: str) -> Cube:
    """The open cube of a worker; `identity` keeps an overwritten store from being mistaken.

    RunError: this process runs other code than that which the cube was begun with.
    """
    cube = open_cube(url, "r+")
    differs = check_code(cube.versions)
    if differs:
        raise RunError(f"a worker runs other code than the one that began {url}: {differs}")
    return cube


def _read_statistics(url: str, group: zarr.Group) -> tuple[str, ...]:
    """The names of a summary's statistics, as the root's metadata have them."""
    # The array's attribute, not its values: it is in the root's metadata, and costs no other file.
    names = group.get(STATISTIC)
    if isinstance(names, zarr.Array):
        meanings = names.attrs.get("meanings")
        if isinstance(meanings, dict) and names.shape == (len(meanings),):
            return tuple(map(str, meanings))
    raise InputError(f"damaged: the array {STATISTIC!r} is missing", where=url, advice=ANEW)


def _check_axes(url: str, group: zarr.Group, grid: Grid) -> None:
    """Refuse a coordinate that is not as long as the spec's axis: a forged one may be endless."""
    sizes = dict(zip(grid.dims, grid.shape, strict=True))
    sizes |= {name: values.size for name, (_, values) in list_columns(grid).items()}
    for name, size in sizes.items():
        member = group.get(name)
        if not isinstance(member, zarr.Array) or member.shape != (size,):
            raise InputError(
                f"damaged: the array {name!r} is not as long as its axis", where=url, advice=ANEW
            )


def _open_arrays(
    url: str, group: zarr.Group, grid: Grid, plan: Plan, statistics: int
) -> dict[str, Array]:
    """The arrays that blocks are written to, by name, cut as the plan says."""
    arrays: dict[str, Array] = {}
    with zarr.config.set({"array.write_empty_chunks": True}):  # arrays keep it from here on
        for name in (*grid.spec.outputs, SERIAL, SUMMARY, DONE):
            member = group.get(name)
            if not isinstance(member, zarr.Array):
                raise InputError(f"damaged: the array {name!r} is missing", where=url, advice=ANEW)
            if not _is_as_planned(member, name, plan, statistics):
                raise InputError(
                    f"damaged: the array {name!r} is not cut as the plan says",
                    where=url,
                    advice=ANEW,
                )
            arrays[name] = member
    return arrays


def _is_as_planned(array: Array, name: str, plan: Plan, statistics: int) -> bool:
    """Whether blocks have their own parts of an array."""
    dims = lay_out(name, plan, statistics).values()
    if array.shape != tuple(size for size, _, _ in dims):
        return False
    shards = tuple(shard for _, shard, _ in dims)
    # Marks may be packed otherwise than MARKS_A_FILE says: their chunks are read from the array.
    return name == DONE or (array.shards or array.chunks) == shards


def get_array(group: zarr.Group, name: str) -> Array:
    """An array of a group, by its path."""
    member = group[name]
    assert isinstance(member, zarr.Array), name
    return member
