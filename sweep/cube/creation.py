"""Creation of a store: all arrays of the cube with their attributes, before any block.

An extension gives axes more values, behind the stored ones, so that blocks keep their positions and
full blocks their files. A block at the old end of an axis may gain cells, if its shard was not
full; then its done-mark is cleared, and it is computed again. If the process is killed, the cube is
either the old or the new one: readers rely on the root's metadata, which change in one write, after
all that they describe.
"""

import os
import warnings
from asyncio import gather
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray
from zarr.abc.store import Store
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec
from zarr.core.buffer import Buffer
from zarr.core.common import JSON
from zarr.core.group import GroupMetadata
from zarr.core.sync import sync
from zarr.errors import ZarrUserWarning
from zarr.storage import MemoryStore

from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.rows import append_rows
from paradl.sweep.cube import provenance
from paradl.sweep.cube.difference import describe_other_changes, list_added_values
from paradl.sweep.cube.object_store import is_remote
from paradl.sweep.cube.plan import (
    DONE,
    SERIAL,
    STATISTIC,
    SUMMARY,
    Plan,
    Size,
    find_shape,
    lay_out,
    plan_cube,
)
from paradl.sweep.cube.root import METADATA, make_store, open_group
from paradl.sweep.cube.store import Cube, get_array, open_cube
from paradl.sweep.cube.variables import (
    TABLE,
    VARIABLES,
    VERSION,
    Table,
    describe_coordinate,
    describe_statistics,
    list_columns,
    list_coordinates,
    list_objectives,
)

Entry = TypeVar("Entry")

# Byte shuffle with lz4 is the fastest of blosc's codecs that still halves the cube.
CODEC = partial(BloscCodec, cname="lz4", shuffle="shuffle", clevel=5)
# Computed on compressed bytes, so that a damaged chunk is detected before it is decoded.
CHECKSUM = Crc32cCodec()
# All files of an array in one folder: a folder per dimension and block would cost more.
FLAT: Any = {"name": "default", "separator": "."}
INCOMPLETE: dict[str, JSON] = {"paradl_incomplete": True}


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
    # Marks by a block's position, which stays the same when axes grow. One byte each: an
    # uncompressed file of 1,024 fits the smallest block of most disks.
    _create_parts(group, DONE, lay_out(DONE, plan), "uint8", compressors=CHECKSUM)
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
    """Return a store without old arrays; names: of the new cube's arrays and groups."""
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


def _create_variable(group: zarr.Group, name: str, plan: Plan) -> None:
    variable = VARIABLES[name]
    _create_parts(
        group,
        name,
        lay_out(name, plan),
        variable.dtype,
        compressors=(CODEC(typesize=variable.dtype.itemsize), CHECKSUM),
        fill_value=variable.fill_value,
        dimension_names=tuple(lay_out(name, plan)),
        attributes=variable.attributes,
    )


def _create_summary(group: zarr.Group, plan: Plan, statistics: Table) -> None:
    """Create a single array of all statistics."""
    dims = lay_out(SUMMARY, plan, len(statistics))
    _create_parts(
        group,
        SUMMARY,
        dims,
        "float64",  # single precision cannot represent all PE counts beyond 2^24
        compressors=(CODEC(typesize=8), CHECKSUM),
        fill_value=float("nan"),
        dimension_names=tuple(dims),
        attributes={
            "long_name": "summary of each line of PE counts",
            "version": VERSION,
            "objectives": list_objectives(statistics),
        },
    )


def _create_parts(
    group: zarr.Group, name: str, dims: Mapping[str, Size], dtype: DTypeLike, **options: Any
) -> None:
    """Create an array that blocks are written to, with a file for each."""
    group.create_array(
        name,
        shape=tuple(size for size, _ in dims.values()),
        # No shards: Zarr would copy the chunk; writing takes 0.85 of the time without (2026-11).
        chunks=tuple(part for _, part in dims.values()),
        dtype=dtype,
        chunk_key_encoding=FLAT,
        **options,
    )


def _create_labels(
    group: zarr.Group, path: str, dim: str, values: NDArray[Any], attributes: Mapping[str, JSON]
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
        attributes=dict(attributes),
    )
    get_array(group, path)[:] = values


@dataclass(frozen=True)
class Extension:
    """An extended cube: its grid and plan, and the values that each axis gains."""

    grid: Grid
    plan: Plan
    added: dict[str, list[Any]]


def plan_extension(cube: Cube, wanted: Grid) -> Extension:
    """Plan the extension of a cube by all values that only `wanted` has.

    InputError: `wanted` lacks or changes something, or inserts numbers before the end of an axis.
    """
    differs = describe_other_changes(cube.grid, wanted)
    if differs:
        raise InputError(
            f"a store can only gain values, and this one has a different sweep: {differs}",
            where=cube.url,
            advice="include the stored values, or sweep into another store",
        )
    new = list_added_values(cube.grid, wanted)
    # Labels and zipped axes have no order: new ones go to the end, wherever the spec lists them.
    for dim in set(new) - {*LABELS, *wanted.rows}:
        _check_at_the_end(cube, dim, new[dim])
    grid = _merge_entries(cube.grid, wanted)
    # Blocks keep their size: otherwise all files would have to be rewritten.
    plan = replace(plan_cube(grid), shard=cube.plan.shard)
    return Extension(grid, plan, new)


def find_missing_blocks(cube: Cube, extension: Extension) -> NDArray[np.bool_]:
    """Return which blocks of the extended cube must be computed [blocks along each dimension]."""
    missing = np.ones(extension.plan.grid, bool)
    before = tuple(slice(count) for count in cube.plan.grid)
    gaining = find_gaining_blocks(cube.plan, extension.plan)
    missing[before] = ~cube.read_done().reshape(cube.plan.grid) | gaining
    return missing


def find_gaining_blocks(before: Plan, after: Plan) -> NDArray[np.bool_]:
    """Return which blocks have more cells in the plan `after` [blocks along each dimension]."""
    gains = np.zeros(before.grid, bool)
    sizes = zip(before.shape, after.shape, before.shard, strict=True)
    for dim, (old, new, shard) in enumerate(sizes):
        # A full last block gains nothing: new values belong to new blocks.
        if new > old and old % shard:
            gains[(slice(None),) * dim + (-1,)] = True
    return gains


def extend_cube(cube: Cube, extension: Extension) -> Cube:
    """Make room for the new cells in the store, with their blocks not done."""
    outdated = cube.read_done() & find_gaining_blocks(cube.plan, extension.plan).reshape(-1)
    # Marks go first: after a kill, these blocks of the old cube are computed again. In the other
    # order, blocks that lack cells would count as done.
    cube.mark(np.flatnonzero(outdated).tolist(), done=False)
    axes = list_coordinates(extension.grid)
    axes |= {name: values for name, (_, values) in list_columns(extension.grid).items()}
    # In memory first, as for a new store, and from the root's metadata: those of the arrays may be
    # of an extension that was killed.
    files: dict[str, Buffer] = {}
    store = MemoryStore(files)
    consolidated = cube.group.metadata.consolidated_metadata
    assert consolidated is not None  # without, no cube is opened
    nodes = {"": GroupMetadata()} | consolidated.flattened_metadata
    list(zarr.create_hierarchy(store=store, nodes=nodes))  # each is created as it is asked for
    group = zarr.open_group(store, mode="r+", zarr_format=3)
    for name in cube.arrays:
        get_array(group, name).resize(find_shape(name, extension.plan, len(cube.statistics)))
    for name, values in axes.items():
        get_array(group, name).resize(values.shape)
        # Stored values come first, where readers of the old cube expect them.
        get_array(group, name)[:] = values
    # A new id, too, since workers may have the old cube open.
    origin = provenance.describe_origin(extension.grid, extension.plan)
    origin["history"] = f"{cube.group.attrs['history']}\n{provenance.format_event('extended')}"
    consolidate_metadata(group).attrs.put(origin)
    write_files(cube.group.store, files)
    return open_cube(cube.url, "r+")


def _check_at_the_end(cube: Cube, dim: str, new: list[float]) -> None:
    """Refuse numbers before the end of an axis, where stored values would have to move."""
    last = cube.grid.axes[dim][-1]
    early = [value for value in new if value < last]
    if early:
        listed = ", ".join(f"{value:.12g}" for value in early[:5])
        raise InputError(
            f"axes.{dim}: an axis can only grow beyond its end, {last:.12g}; not by: "
            f"{listed}{' ...' if len(early) > 5 else ''}",
            where=cube.url,
            advice="leave them out, or sweep into another store",
        )


def _merge_entries(stored: Grid, wanted: Grid) -> Grid:
    """Return the design space of all that `wanted` has, with stored entries first."""

    def list_new(dim: str, entries: Iterable[Entry]) -> Iterator[Entry]:
        labelled = zip(wanted.labels[dim], entries, strict=True)
        return (entry for label, entry in labelled if label not in stored.labels[dim])

    rows = {name: append_rows(stored.rows[name], rows) for name, rows in wanted.rows.items()}
    axes = wanted.spec.axes.model_copy(update=rows)
    return replace(
        wanted,
        models=(*stored.models, *list_new("model", wanted.models)),
        datasets=(*stored.datasets, *list_new("dataset", wanted.datasets)),
        systems=(*stored.systems, *list_new("system", wanted.systems)),
        strategies=(*stored.strategies, *list_new("strategy", wanted.strategies)),
        spec=wanted.spec.model_copy(update={"axes": axes}),
    )
