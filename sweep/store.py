"""The store: a Zarr v3 group that holds the cube, complete in itself.

Every variable is cut into the plan's shards; a block's data are written before its done-mark (one
byte in `progress/done`, a file of its own), so that a killed run has lost no block that is marked.
Every chunk carries a checksum (`verify.py` reads them all), and chunks of nothing but fill values
are written, too: else a file that is lost would read as an answer. The root attributes hold the
whole spec: any process that can reach the store can compute any block of it.
"""

import json
from asyncio import gather
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.sync import sync
from zarr.registry import get_pipeline_class

from grids.errors import InputError
from grids.grid import Grid
from grids.parameters import LAYERED
from sweep import provenance, variables
from sweep.errors import RunError
from sweep.layout import DONE, NOT_SERIAL, SERIAL, SUMMARY, part
from sweep.plan import Plan, Region, make_plan
from sweep.remote import is_remote, opening
from sweep.variables import Arrays

Mode = Literal["r", "r+"]
Array: TypeAlias = "zarr.Array[Any]"

METADATA = "zarr.json"

# What Zarr and its codecs raise where a chunk is not what was written.
UNREADABLE = (ValueError, RuntimeError, OSError)
# What it raises where metadata are not what was written, but some other JSON, or none.
NO_METADATA = (*UNREADABLE, TypeError, KeyError, AttributeError)


@dataclass(frozen=True, eq=False)
class Cube:
    """An open store with its grid and plan."""

    url: str
    group: zarr.Group
    grid: Grid
    plan: Plan
    arrays: Mapping[str, Array]

    @property
    def location(self) -> str:
        """The url as a process with another working directory finds it."""
        return self.url if is_remote(self.url) else str(Path(self.url).absolute())

    @property
    def identity(self) -> str:
        """Tells this cube from any other that stands, or stood, at the same place."""
        return str(self.group.attrs["paradl_id"])

    @property
    def version(self) -> str:
        """The paradl that made the cube."""
        return str(json.loads(str(self.group.attrs["paradl_versions"]))["paradl"])

    def done(self) -> NDArray[np.bool_]:
        """Which blocks are complete [blocks]."""
        try:
            return np.asarray(self.arrays[DONE][...]).astype(bool).reshape(-1)
        except UNREADABLE as error:
            raise RunError(
                f"{self.url}: the marks of finished blocks cannot be read ({error}); "
                f"find what is damaged with: paradl status {self.url} --verify"
            ) from error

    def write(self, block: int, arrays: Arrays) -> None:
        """Write a block's variables and summary, then its done-mark."""

        async def write_all() -> None:
            writes = (self._write(name, block, values) for name, values in arrays.items())
            # Where one fails, the others are waited for, and then it is told.
            ends = await gather(*writes, return_exceptions=True)
            for error in filter(None, ends):
                raise error
            await self._mark(block, True)

        sync(write_all())

    async def _write(self, name: str, block: int, values: NDArray[Any]) -> None:
        array, place = self.arrays[name].async_array, self.place(name, block)
        try:
            await array.setitem(place, values)
        except (ValueError, RuntimeError):  # Zarr reads what it replaces, and that was damaged
            await array.store_path.store.delete(self.file(name, block))
            await array.setitem(place, values)

    def mark(self, block: int, done: bool) -> None:
        """Say that a block is complete, or not."""
        sync(self._mark(block, done))

    async def _mark(self, block: int, done: bool) -> None:
        mark = np.full((1,) * len(self.plan.grid), done, np.uint8)
        await self.arrays[DONE].async_array.setitem(self.place(DONE, block), mark)

    def position(self, block: int) -> tuple[int, ...]:
        """A block's place among the blocks along each dimension."""
        return tuple(map(int, np.unravel_index(block, self.plan.grid)))

    def fits(self, block: int) -> bool:
        """Whether the samples of the block's dataset fit its model: else nothing is written."""
        model, dataset, *_ = self.position(block)  # one of each in a block
        return self.grid.table(model, dataset) is not None

    def held(self, block: int) -> list[str]:
        """The arrays that have a file of this block's once it is done."""
        if not self.fits(block):
            return []
        position = zip(self.plan.dims, self.position(block), strict=True)
        first = all(at == 0 for dim, at in position if dim in NOT_SERIAL)
        return [name for name in self.arrays if name != DONE and (first or name != SERIAL)]

    def place(self, name: str, block: int) -> Region:
        """The part of an array that belongs to a block."""
        return part(name, self.plan, self.plan.region(block))

    def file(self, name: str, block: int) -> str:
        """The file, in the store, that holds this part and no other's."""
        return file(self.arrays[name], self.place(name, block))


def file(array: Array, place: Region) -> str:
    """The file, in its store, of the shard or chunk at which a part of an array starts."""
    starts = [each.start for each in place] + [0] * (array.ndim - len(place))
    sizes = array.shards or array.chunks
    position = tuple(start // size for start, size in zip(starts, sizes, strict=True))
    return f"{array.path}/{array.metadata.encode_chunk_key(position)}"


def plan_of(grid: Grid) -> Plan:
    """How the grid's cube is cut into blocks."""
    layers = max(map(len, grid.fitting.values()), default=1)
    return make_plan(grid.dims, grid.shape, cell_bytes(grid), 2, layers=layers, layered=LAYERED)


def cell_bytes(grid: Grid) -> int:
    """What all variables together store of a cell."""
    return sum(variables.dtype(name).itemsize for name in grid.spec.outputs)


def open_cube(url: str, mode: Mode = "r") -> Cube:
    """Open a store that `creation.create` made; InputError says what stands there instead."""
    group = open_group(url, mode)
    if group is None:
        raise InputError("no cube here", where=url, advice="make one with: paradl sweep SPEC STORE")
    grid = Grid.from_definition(_definition(url, group))
    plan = _stored_plan(grid, json.loads(str(group.attrs["paradl_plan"])))
    return Cube(url, group, grid, plan, _arrays(url, group, grid))


def unfinished(group: zarr.Group) -> bool:
    """Whether the making of a cube was cut short, before any block."""
    return bool(group.attrs.get("paradl_incomplete", False))


@lru_cache(maxsize=4)
def shared_cube(url: str, identity: str) -> Cube:
    """The open cube of this process; `identity` keeps an overwritten store from being mistaken."""
    return open_cube(url, "r+")


def open_group(url: str, mode: Mode) -> zarr.Group | None:
    """The group of a cube, None where there is nothing yet; InputError where something else is."""
    if url.endswith(".zip"):
        raise InputError(
            "a zip file can be written only once", where=url, advice="name a folder, such as x.zarr"
        )
    _check_codecs()
    try:
        with opening(url):
            group = zarr.open_group(url, mode=mode)
    except InputError:  # it has been said already
        raise
    except FileNotFoundError:
        if _empty(url):
            return None
        raise InputError(
            "this folder holds something else, and no cube; left untouched",
            where=url,
            advice="choose another place",
        ) from None
    except PermissionError as error:
        raise InputError(f"cannot be opened: {error.strerror}", where=url) from None
    except (*NO_METADATA, ImportError) as error:
        raise InputError(
            f"not a Zarr group that can be read ({error})", where=url, advice="check the path"
        ) from None
    if not {"paradl_format", "paradl_incomplete"} & set(group.attrs):
        raise InputError(
            "a Zarr group, but not one of paradl's; left untouched",
            where=url,
            advice="choose another place",
        )
    return group


def _check_codecs() -> None:
    """Refuse a set-up of Zarr that names codecs which are not there, before anything is made."""
    try:
        get_pipeline_class()
    except (ValueError, ImportError) as error:
        raise InputError(
            f"Zarr is set up with codecs that are not there ({error})",
            where="ZARR_CODEC_PIPELINE__PATH",
            advice="install their package (zarrs), or unset it",
        ) from None


def remove_partial(url: str) -> None:
    """Remove what killed runs left of files that they had not written whole.

    Zarr writes a local file under such a name first, and renames it when it is complete.
    """
    if not is_remote(url):
        for path in Path(url).rglob("*.partial"):
            path.unlink(missing_ok=True)


def _empty(url: str) -> bool:
    """Whether nothing is in the way of a new cube; an object store has no folders to look into."""
    path = Path(url)
    return is_remote(url) or not path.exists() or (path.is_dir() and not any(path.iterdir()))


def _definition(url: str, group: zarr.Group) -> dict[str, object]:
    if unfinished(group):
        raise InputError(
            "the making of this cube was cut short",
            where=url,
            advice="run the same paradl sweep again",
        )
    found = group.attrs.get("paradl_format")
    if found != provenance.FORMAT:
        raise InputError(
            f"a cube of format {found}, and this paradl reads format {provenance.FORMAT}",
            where=url,
            advice=f"use paradl {_writer(group)}, or sweep again into another store",
        )
    try:
        definition: dict[str, object] = json.loads(str(group.attrs["paradl_spec"]))
    except (KeyError, ValueError) as error:
        raise InputError(f"the cube's spec cannot be read ({error})", where=url) from None
    return definition


def _writer(group: zarr.Group) -> str:
    return str(group.attrs.get("source", "of that version")).removeprefix("paradl ")


def _stored_plan(grid: Grid, made: Mapping[str, Any]) -> Plan:
    """The plan as it was when the store was made, whatever today's sizes of shards are."""
    return Plan(
        grid.dims,
        grid.shape,
        tuple(made["shard"]),
        tuple(made["chunk"]),
        cell_bytes(grid),
        made["layers"],
        LAYERED,
    )


def _arrays(url: str, group: zarr.Group, grid: Grid) -> dict[str, Array]:
    """The arrays that blocks are written to, by name."""
    names = [*grid.spec.outputs, SERIAL, SUMMARY, DONE]
    missing = [name for name in names if name not in group]
    if missing:
        raise InputError(
            f"damaged: the array {missing[0]!r} is gone",
            where=url,
            advice="sweep again with --overwrite",
        )
    with zarr.config.set({"array.write_empty_chunks": True}):  # arrays keep it from here on
        return {name: array(group, name) for name in names}


def array(group: zarr.Group, name: str) -> Array:
    """An array of a group, by its path."""
    found = group[name]
    assert isinstance(found, zarr.Array), name
    return found
