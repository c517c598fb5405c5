"""A new store: every array of the cube with its attributes, before any block is computed."""

import warnings
from functools import partial
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec
from zarr.errors import ZarrUserWarning

from grids.grid import Grid
from grids.parameters import PARAMETERS
from kernels import Limit
from sweep import provenance, variables
from sweep.plan import Plan
from sweep.store import (
    DONE,
    NOT_SERIAL,
    PART,
    SERIAL,
    SUMMARY,
    Cube,
    open_cube,
    open_group,
)

# Byte shuffle and lz4: of blosc's codecs the fastest that still halves the cube.
CODEC = partial(BloscCodec, cname="lz4", shuffle="shuffle", clevel=5)
INCOMPLETE: dict[str, Any] = {"paradl_incomplete": True}


def create(url: str, grid: Grid, plan: Plan) -> Cube:
    """Make the store, empty but for its coordinates; a cube that stood there is gone.

    The attributes that make it a cube come last, with the metadata of all arrays, in one write:
    what a kill leaves before it is no cube.
    """
    group = _cleared(url)
    for name in grid.spec.outputs:
        _create_variable(group, name, plan, plan.dims)
    kept = tuple(dim for dim in plan.dims if dim not in NOT_SERIAL)
    _create_variable(group, SERIAL, plan, kept)
    for name in variables.SUMMARY:
        _create_summary(group, name, plan)
    for dim, labels in grid.labels.items():
        _create_coordinate(group, dim, np.array(labels, object), "str", grid)
    for dim, values in grid.axes.items():
        dtype = "int64" if PARAMETERS[dim].whole else "float64"
        _create_coordinate(group, dim, values, dtype, grid)
    group.create_array(DONE, shape=(plan.blocks,), chunks=(1,), dtype="uint8", compressors=None)
    _consolidated(group).attrs.put(provenance.attributes(grid, plan))
    return open_cube(url, "r+")


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


def _consolidated(group: zarr.Group) -> zarr.Group:
    with warnings.catch_warnings():
        # Zarr warns that other readers may not know consolidated metadata; they may ignore them.
        warnings.simplefilter("ignore", ZarrUserWarning)
        return zarr.consolidate_metadata(group.store)


def _create_variable(group: zarr.Group, name: str, plan: Plan, dims: tuple[str, ...]) -> None:
    sizes = {
        dim: (size, shard, chunk)
        for dim, size, shard, chunk in zip(
            plan.dims, plan.shape, plan.shard, plan.chunk, strict=True
        )
        if dim in dims
    }
    shape, shards, chunks = zip(*sizes.values(), strict=True)
    group.create_array(
        name,
        shape=shape,
        shards=shards,
        chunks=chunks,
        dtype=variables.dtype(name),
        compressors=CODEC(typesize=variables.dtype(name).itemsize),
        fill_value=variables.fill_value(name),
        dimension_names=dims,
        attributes=variables.variable(name),
    )


def _create_summary(group: zarr.Group, name: str, plan: Plan) -> None:
    """One array of the summary: a chunk a block."""
    dtype, fill, meaning = variables.SUMMARY[name]
    blocks = dict(zip(plan.dims, plan.grid, strict=True))
    sizes = {
        PART if dim == "pe" else dim: (blocks[dim], 1) if dim == "pe" else (size, shard)
        for dim, size, shard in zip(plan.dims, plan.shape, plan.shard, strict=True)
    }
    if name == "counts":
        sizes["flag"] = (len(Limit), len(Limit))
    shape, chunks = zip(*sizes.values(), strict=True)
    group.create_array(
        f"{SUMMARY}/{name}",
        shape=shape,
        chunks=tuple(map(min, chunks, shape)),
        dtype=dtype,
        compressors=CODEC(typesize=np.dtype(dtype).itemsize),
        fill_value=fill,
        dimension_names=tuple(sizes),
        attributes={"long_name": meaning},
    )


def _create_coordinate(
    group: zarr.Group, dim: str, values: NDArray[Any], dtype: str, grid: Grid
) -> None:
    array = group.create_array(
        dim,
        shape=values.shape,
        chunks=values.shape,
        dtype=dtype,
        dimension_names=(dim,),
        attributes=variables.coordinate(dim, grid.spec.scaling),
    )
    array[:] = values
