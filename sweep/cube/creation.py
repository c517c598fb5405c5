"""Creation of a store: all arrays of the cube with their attributes, before any block."""

import os
import warnings
from asyncio import gather
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.codec import BytesBytesCodec
from zarr.abc.store import Store
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec
from zarr.core.buffer import Buffer
from zarr.core.sync import sync
from zarr.errors import ZarrUserWarning
from zarr.storage import MemoryStore

from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube import provenance
from paradl.sweep.cube.guarded_store import make_store
from paradl.sweep.cube.object_store import is_remote
from paradl.sweep.cube.plan import DONE, SERIAL, STATISTIC, SUMMARY, Plan, find_shape, lay_out
from paradl.sweep.cube.root import METADATA, open_group
from paradl.sweep.cube.store import Cube, get_array, open_cube
from paradl.sweep.cube.variables import (
    TABLE,
    VARIABLES,
    VERSION,
    Attributes,
    Table,
    describe_coordinate,
    describe_statistics,
    list_columns,
    list_coordinates,
    list_objectives,
)

# Byte shuffle with lz4 is the fastest of blosc's codecs that still halves the cube.
CODEC = partial(BloscCodec, cname="lz4", shuffle="shuffle", clevel=5)
# Computed on compressed bytes, so that a damaged chunk is detected before it is decoded.
CHECKSUM = Crc32cCodec()
# All files of an array in one folder: a folder per dimension and block would cost more than most
# files.
FLAT: Any = {"name": "default", "separator": "."}
INCOMPLETE: dict[str, Any] = {"paradl_incomplete": True}


def create_cube(url: str, grid: Grid, plan: Plan, statistics: Table = TABLE) -> Cube:
    """Create a store with coordinates and no blocks, in place of any cube at `url`.

    statistics: those of the summary, in order. The attributes that make it a cube are written last,
    together with the metadata of all arrays, so that a kill before leaves no cube.
    """
    # In memory first: before each array, Zarr asks the store what is there. A sweep of 4 blocks
    # into an object store took 234 requests, and takes 73 (2026-11).
    files: dict[str, Buffer] = {}
    group = zarr.create_group(MemoryStore(files))
    for name in (*grid.spec.outputs, SERIAL):
        _create_variable(group, name, plan)
    _create_summary(group, plan, statistics)
    for dim, values in list_coordinates(grid).items():
        _create_labels(group, dim, dim, values, describe_coordinate(dim, grid))
    for name, (dim, values) in list_columns(grid).items():
        _create_labels(group, name, dim, values, describe_coordinate(name, grid))
    names = np.array(list(statistics), object)
    _create_labels(group, STATISTIC, "statistic", names, describe_statistics(statistics))
    _create_marks(group, plan)
    consolidate_metadata(group).attrs.put(provenance.describe_origin(grid, plan))
    write_files(_clear_store(url, {path.partition("/")[0] for path in files}), files)
    return open_cube(url, "r+")


def write_files(store: Store, files: dict[str, Buffer]) -> None:
    """Write the files of a group; the root's metadata, which readers rely on, last.

    No reader sees half of them: on a disk Zarr writes another file and renames it, and an object
    store replaces objects as a whole.
    """

    async def write_all() -> None:
        writes = (store.set(path, files[path]) for path in files if path != METADATA)
        # An error is raised after all have ended.
        for error in filter(None, await gather(*writes, return_exceptions=True)):
            raise error
        await store.set(METADATA, files[METADATA])

    sync(write_all())


def _clear_store(url: str, names: Collection[str]) -> Store:
    """Return a store without old arrays, marked as incomplete before any of them is deleted.

    names: of the new cube's arrays and groups.
    """
    group = open_group(url, "r+")
    if group is None:
        # Not of the path as text: Zarr would cut it at `;`, `?` or `#`, as a URL (3.4.2).
        return zarr.create_group(make_store(url, read_only=False), attributes=INCOMPLETE).store
    _refuse_links(url)
    # First the mark, then the deletions, so that a kill never leaves a cube that lacks arrays.
    group.attrs.put(INCOMPLETE)
    sync(_delete_members(group.store, names))
    return group.store


async def _delete_members(store: Store, names: Collection[str]) -> None:
    """Delete the arrays and groups of a store, and all that has one of `names`.

    Zarr's own list would need their metadata. These may be damaged, or gone: of a deletion that was
    killed, chunks may be left, which would pass for those of a new array of the same name.
    """
    entries = [name async for name in store.list_dir("") if name != METADATA]
    for name in entries:
        if name in names or await store.exists(f"{name}/{METADATA}"):
            await store.delete_dir(name)


def _refuse_links(url: str) -> None:
    """Refuse a store with a symbolic link, which may lead elsewhere, before deleting anything."""
    if is_remote(url):
        return
    for folder, folders, files in os.walk(url):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path.is_symlink():
                raise InputError(
                    "paradl never creates symbolic links; nothing was removed",
                    where=str(path),
                    advice="remove it, or sweep into another store",
                )


def consolidate_metadata(group: zarr.Group) -> zarr.Group:
    """Copy the metadata of all arrays into the group's."""
    with warnings.catch_warnings():
        # Zarr warns that other readers may not know consolidated metadata; they can ignore them.
        warnings.simplefilter("ignore", ZarrUserWarning)
        return zarr.consolidate_metadata(group.store)


def _make_codecs(itemsize: int) -> tuple[BytesBytesCodec, ...]:
    """Return the codecs of a chunk: compression, then a checksum."""
    return CODEC(typesize=itemsize), CHECKSUM


def _create_variable(group: zarr.Group, name: str, plan: Plan) -> None:
    """Create the array of a variable, a file for each block."""
    dims, variable = lay_out(name, plan), VARIABLES[name]
    group.create_array(
        name,
        shape=find_shape(name, plan),
        # A chunk by itself: into a shard of one, Zarr would copy it. Writing takes 0.85 of the CPU
        # time without (2026-11).
        chunks=tuple(size for _, size in dims.values()),
        dtype=variable.dtype,
        compressors=_make_codecs(variable.dtype.itemsize),
        fill_value=variable.fill_value,
        dimension_names=tuple(dims),
        attributes=variable.attributes,
        chunk_key_encoding=FLAT,
    )


def _create_summary(group: zarr.Group, plan: Plan, statistics: Table) -> None:
    """Create a single array of all statistics, with a file per block."""
    dims = lay_out(SUMMARY, plan, len(statistics))
    group.create_array(
        SUMMARY,
        shape=find_shape(SUMMARY, plan, len(statistics)),
        chunks=tuple(size for _, size in dims.values()),
        dtype="float64",  # single precision cannot represent all PE counts beyond 2^24
        compressors=_make_codecs(8),
        fill_value=float("nan"),
        dimension_names=tuple(dims),
        attributes={
            "long_name": "summary of each line of PE counts",
            "version": VERSION,
            "objectives": list_objectives(statistics),
        },
        chunk_key_encoding=FLAT,
    )


def _create_marks(group: zarr.Group, plan: Plan) -> None:
    """Create the done-marks, by a block's position, which stays the same when axes grow."""
    group.create_array(
        DONE,
        shape=find_shape(DONE, plan),
        chunks=tuple(size for _, size in lay_out(DONE, plan).values()),
        # One byte per mark: an uncompressed file of 1,024 fits the smallest block of most disks.
        dtype="uint8",
        compressors=CHECKSUM,
        chunk_key_encoding=FLAT,
    )


def _create_labels(
    group: zarr.Group, path: str, dim: str, values: NDArray[Any], attributes: Attributes
) -> None:
    """Create and fill an array of values along a dimension."""
    group.create_array(
        path,
        shape=values.shape,
        # A single file is read with one request.
        chunks=values.shape,
        # Zarr's texts have any length; numpy's are fixed, and an extension may add a longer label.
        dtype="str" if values.dtype == object else values.dtype,
        compressors=(ZstdCodec(), CHECKSUM),
        dimension_names=(dim,),
        attributes=attributes,
    )
    get_array(group, path)[:] = values
