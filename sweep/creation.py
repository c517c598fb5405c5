"""A new store: every array of the cube with its attributes, before any block is computed."""

import warnings
from functools import partial
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec
from zarr.errors import ZarrUserWarning

from grids.grid import Grid
from grids.parameters import PARAMETERS
from kernels.flags import Limit
from sweep import provenance, variables
from sweep.plan import Plan
from sweep.store import (
    DONE,
    NOT_SERIAL,
    PART,
    SERIAL,
    SUMMARY,
    Cube,
    array,
    open_cube,
    open_group,
)

# Byte shuffle and lz4: of blosc's codecs the fastest that still halves the cube.
CODEC = partial(BloscCodec, cname="lz4", shuffle="shuffle", clevel=5)
# Of what is compressed: so that a damaged chunk is told before it is decoded.
CHECKSUM = Crc32cCodec()
# All files of an array in one folder: a folder for each dimension of each block costs more than most
# files that would be in them.
FLAT: Any = {"name": "default", "separator": "."}
INCOMPLETE: dict[str, Any] = {"paradl_incomplete": True}

Size = tuple[int, int, int]  # of a dimension, of a shard and of a chunk along it


def create(url: str, grid: Grid, plan: Plan) -> Cube:
    """Make the store, empty but for its coordinates; a cube that stood there is gone.

    The attributes that make it a cube come last, with the metadata of all arrays, in one write:
    what a kill leaves before it is no cube.
    """
    group = _cleared(url)
    for name in grid.spec.outputs:
        _create_variable(group, name, plan)
    _create_variable(group, SERIAL, plan)
    for name in variables.SUMMARY:
        _create_summary(group, name, plan)
    for dim, values in coordinates(grid).items():
        _create_coordinate(group, dim, values, grid)
    _create_marks(group, plan)
    consolidated(group).attrs.put(provenance.attributes(grid, plan))
    return open_cube(url, "r+")


def layout(name: str, plan: Plan) -> dict[str, Size]:
    """The dimensions of an array that blocks are written to."""
    blocks = dict(zip(plan.dims, plan.grid, strict=True))
    if name == DONE:
        return {dim: (count, 1, 1) for dim, count in blocks.items()}
    sizes = zip(plan.dims, zip(plan.shape, plan.shard, plan.chunk, strict=True), strict=True)
    if not name.startswith(SUMMARY):
        return {dim: size for dim, size in sizes if name != SERIAL or dim not in NOT_SERIAL}
    found = {
        PART if dim == "pe" else dim: (blocks[dim], 1, 1) if dim == "pe" else (size, shard, shard)
        for dim, (size, shard, _) in sizes
    }
    return found | ({"flag": (len(Limit),) * 3} if name.endswith("counts") else {})


def shape(name: str, plan: Plan) -> tuple[int, ...]:
    """The shape of an array that blocks are written to."""
    return tuple(size for size, _, _ in layout(name, plan).values())


def coordinates(grid: Grid) -> dict[str, NDArray[Any]]:
    """The values along each dimension, as they are stored."""
    labels = {dim: np.array(values, object) for dim, values in grid.labels.items()}
    return labels | {
        dim: values.astype("int64" if PARAMETERS[dim].whole else "float64")
        for dim, values in grid.axes.items()
    }


def _cleared(url: str) -> zarr.Group:
    """An empty group, marked as no cube yet before anything of an old one goes."""
    group = open_group(url, "r+")
    if group is None:
        return zarr.create_group(url, attributes=INCOMPLETE)
    group.attrs.put(INCOMPLETE)
    bare = zarr.open_group(url, mode="r+", use_consolidated=False)
    for name in list(bare.keys()):
        del bare[name]
    return bare


def consolidated(group: zarr.Group) -> zarr.Group:
    """The group with the metadata of all its arrays in its own."""
    with warnings.catch_warnings():
        # Zarr warns that other readers may not know consolidated metadata; they may ignore them.
        warnings.simplefilter("ignore", ZarrUserWarning)
        return zarr.consolidate_metadata(group.store)


def _codecs(itemsize: int) -> tuple[BytesBytesCodec, ...]:
    return CODEC(typesize=itemsize), CHECKSUM


def _create_variable(group: zarr.Group, name: str, plan: Plan) -> None:
    dims = layout(name, plan)
    _, shards, chunks = zip(*dims.values(), strict=True)
    group.create_array(
        name,
        shape=shape(name, plan),
        shards=shards,
        chunks=chunks,
        dtype=variables.dtype(name),
        compressors=_codecs(variables.dtype(name).itemsize),
        fill_value=variables.fill_value(name),
        dimension_names=tuple(dims),
        attributes=variables.variable(name),
        chunk_key_encoding=FLAT,
    )


def _create_summary(group: zarr.Group, name: str, plan: Plan) -> None:
    """One array of the summary: a chunk a block."""
    dtype, fill, meaning = variables.SUMMARY[name]
    path = f"{SUMMARY}/{name}"
    dims = layout(path, plan)
    group.create_array(
        path,
        shape=shape(path, plan),
        chunks=tuple(chunk for _, _, chunk in dims.values()),
        dtype=dtype,
        compressors=_codecs(np.dtype(dtype).itemsize),
        fill_value=fill,
        dimension_names=tuple(dims),
        attributes={"long_name": meaning},
        chunk_key_encoding=FLAT,
    )


def _create_marks(group: zarr.Group, plan: Plan) -> None:
    """A mark a block, each in a file of its own, by the block's place: it stays when axes grow."""
    group.create_array(
        DONE,
        shape=plan.grid,
        chunks=(1,) * len(plan.grid),
        dtype="uint8",
        compressors=CHECKSUM,
        chunk_key_encoding=FLAT,
    )


def _create_coordinate(group: zarr.Group, dim: str, values: NDArray[Any], grid: Grid) -> None:
    group.create_array(
        dim,
        shape=values.shape,
        chunks=values.shape,
        dtype="str" if values.dtype == object else values.dtype,
        compressors=(ZstdCodec(), CHECKSUM),
        dimension_names=(dim,),
        attributes=variables.coordinate(dim, grid.spec.scaling),
    )
    array(group, dim)[:] = values
