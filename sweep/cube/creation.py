"""A new store: every array of the cube with its attributes, before any block is computed."""

import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec
from zarr.errors import ZarrUserWarning

from grids.grid import Grid
from grids.reading.errors import InputError
from sweep.cube import provenance
from sweep.cube.coordinates import (
    describe_coordinate,
    describe_statistics,
    list_columns,
    list_coordinates,
)
from sweep.cube.layout import DONE, SERIAL, STATISTIC, SUMMARY, find_shape, lay_out
from sweep.cube.object_store import is_remote
from sweep.cube.plan import Plan
from sweep.cube.root import open_group
from sweep.cube.statistics import TABLE, VERSION, Table, list_objectives
from sweep.cube.store import Cube, get_array, open_cube
from sweep.cube.variables import VARIABLES, Attributes

# What each codec, chunk and shard comes to: `python -m benchmarks codecs`.
# Byte shuffle and lz4: of blosc's codecs the fastest that still halves the cube.
CODEC = partial(BloscCodec, cname="lz4", shuffle="shuffle", clevel=5)
# Of what is compressed: so that a damaged chunk is told before it is decoded.
CHECKSUM = Crc32cCodec()
# All files of an array in one folder: one for each dimension of each block would cost more than
# most files.
FLAT: Any = {"name": "default", "separator": "."}
INCOMPLETE: dict[str, Any] = {"paradl_incomplete": True}


def create_cube(url: str, grid: Grid, plan: Plan, statistics: Table = TABLE) -> Cube:
    """The cube of a new store, empty but for its coordinates; one that stood there is gone.

    statistics: what its summary keeps of a line of PE counts, in that order.

    The attributes that make it a cube come last, with the metadata of all arrays, in one write:
    what a kill leaves before it is no cube.
    """
    group = _clear_group(url)
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
    # Last, and in one write: from here on it is a cube.
    consolidate_metadata(group).attrs.put(provenance.describe_origin(grid, plan))
    return open_cube(url, "r+")


def _clear_group(url: str) -> zarr.Group:
    """An empty group, marked as no cube yet before anything of an old one goes."""
    group = open_group(url, "r+")
    if group is None:
        return zarr.create_group(url, attributes=INCOMPLETE)
    _refuse_links(url)
    # First the mark, then the deletions: a kill between them leaves what the next sweep begins
    # anew, and never a cube that lacks arrays.
    group.attrs.put(INCOMPLETE)
    # By the folders that are there: the root's consolidated metadata still list what a kill may
    # have deleted already.
    bare = zarr.open_group(group.store, mode="r+", zarr_format=3, use_consolidated=False)
    for name in list(bare.keys()):
        del bare[name]
    return bare


def _refuse_links(url: str) -> None:
    """Refuse a store with a symbolic link, which may lead elsewhere, before anything goes."""
    if is_remote(url):
        return
    for folder, folders, files in os.walk(url):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path.is_symlink():
                raise InputError(
                    "a symbolic link, which paradl never creates; nothing was removed",
                    where=str(path),
                    advice="remove it, or sweep into another store",
                )


def consolidate_metadata(group: zarr.Group) -> zarr.Group:
    """The group with the metadata of all its arrays in its own."""
    with warnings.catch_warnings():
        # Zarr warns that other readers may not know consolidated metadata; they may ignore them.
        warnings.simplefilter("ignore", ZarrUserWarning)
        return zarr.consolidate_metadata(group.store)


def _make_codecs(itemsize: int) -> tuple[BytesBytesCodec, ...]:
    """How a chunk of items of so many bytes is compressed, and checked."""
    return CODEC(typesize=itemsize), CHECKSUM


def _create_variable(group: zarr.Group, name: str, plan: Plan) -> None:
    """Make the array of a variable, in the plan's shards and chunks."""
    dims, variable = lay_out(name, plan), VARIABLES[name]
    # A shard's index has a checksum of its own by Zarr's default (ShardingCodec: BytesCodec,
    # Crc32cCodec), so that no byte of a file is without one.
    _, shards, chunks = zip(*dims.values(), strict=True)
    group.create_array(
        name,
        shape=find_shape(name, plan),
        shards=shards,
        chunks=chunks,
        dtype=variable.dtype,
        compressors=_make_codecs(variable.dtype.itemsize),
        fill_value=variable.fill_value,
        dimension_names=tuple(dims),
        attributes=variable.attributes,
        chunk_key_encoding=FLAT,
    )


def _create_summary(group: zarr.Group, plan: Plan, statistics: Table) -> None:
    """Make one array of all statistics: a file a block, and one to read for a question."""
    dims = lay_out(SUMMARY, plan, len(statistics))
    group.create_array(
        SUMMARY,
        shape=find_shape(SUMMARY, plan, len(statistics)),
        chunks=tuple(chunk for _, _, chunk in dims.values()),
        dtype="float64",  # PE counts beyond 2^24 are no single-precision numbers
        compressors=_make_codecs(8),
        fill_value=float("nan"),
        dimension_names=tuple(dims),
        attributes={
            "long_name": "what a line of PE counts comes to",
            "version": VERSION,
            "objectives": list_objectives(statistics),
        },
        chunk_key_encoding=FLAT,
    )


def _create_marks(group: zarr.Group, plan: Plan) -> None:
    """Make a mark a block, by the block's place: it stays when axes grow."""
    group.create_array(
        DONE,
        shape=find_shape(DONE, plan),
        chunks=tuple(chunk for _, _, chunk in lay_out(DONE, plan).values()),
        # A byte a mark, uncompressed: a file of 1,024 fits the smallest block of most file systems.
        dtype="uint8",
        compressors=CHECKSUM,
        chunk_key_encoding=FLAT,
    )


def _create_labels(
    group: zarr.Group, path: str, dim: str, values: NDArray[Any], attributes: Attributes
) -> None:
    """Make and fill an array of values along a dimension."""
    group.create_array(
        path,
        shape=values.shape,
        # One file, and one request to read it.
        chunks=values.shape,
        # Python's texts become Zarr's of any length: numpy's have a fixed one, and an extension may
        # bring a longer label.
        dtype="str" if values.dtype == object else values.dtype,
        compressors=(ZstdCodec(), CHECKSUM),
        dimension_names=(dim,),
        attributes=attributes,
    )
    get_array(group, path)[:] = values
