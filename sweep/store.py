"""The store: a Zarr v3 group that holds the cube, complete in itself.

Every variable is cut into the plan's shards; a block's data are written before its done-mark (one byte
in `progress/done`, a file of its own), so that a killed run has lost no block that is marked. The root
attributes hold the whole spec: any process that can reach the store can compute any block of it.
"""

import json
import warnings
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec
from zarr.errors import ZarrUserWarning

from grids.errors import InputError
from grids.grid import Grid
from grids.parameters import PARAMETERS
from sweep import provenance, variables
from sweep.plan import Plan, Region, make_plan

Arrays = dict[str, NDArray[Any]]

# The time on one PE, which speedup is counted from, varies along all dimensions but these.
SERIAL = "serial_time"
NOT_SERIAL = ("strategy", "pe")
# Byte shuffle and lz4: of blosc's codecs the fastest that still halves the cube.
CODEC = partial(BloscCodec, cname="lz4", shuffle="shuffle", clevel=5)
DONE = "progress/done"


@dataclass(frozen=True, eq=False)
class Cube:
    """An open store with its grid and plan."""

    url: str
    group: zarr.Group
    grid: Grid
    plan: Plan

    @property
    def identity(self) -> str:
        """Tells this cube from any other that stands, or stood, at the same place."""
        return str(self.group.attrs["paradl_id"])

    def done(self) -> NDArray[np.bool_]:
        """Which blocks are complete [blocks]."""
        return np.asarray(_array(self.group, DONE)[:]).astype(bool)

    def write(self, block: int, arrays: Arrays) -> None:
        """Write a block's variables, then its done-mark."""
        region = self.plan.region(block)
        for name, values in arrays.items():
            _array(self.group, name)[
                serial_region(self.plan, region) if name == SERIAL else region
            ] = values
        _array(self.group, DONE)[block] = 1


def plan_of(grid: Grid) -> Plan:
    """How the grid's cube is cut into blocks."""
    cell_bytes = sum(variables.dtype(name).itemsize for name in grid.spec.outputs)
    return make_plan(grid.dims, grid.shape, cell_bytes, alone=2)


def serial_region(plan: Plan, region: Region) -> Region:
    """The part of `serial_time` that belongs to a block."""
    return tuple(each for dim, each in zip(plan.dims, region, strict=True) if dim not in NOT_SERIAL)


def create(url: str, grid: Grid, plan: Plan) -> Cube:
    """Make the store, empty but for its coordinates; whatever stood there is gone.

    The attributes that make it a cube come last: what a kill leaves before them is no cube.
    """
    group = zarr.create_group(url, overwrite=True, attributes={"paradl_incomplete": True})
    for name in grid.spec.outputs:
        _create_variable(group, name, plan, plan.dims)
    kept = tuple(dim for dim in plan.dims if dim not in NOT_SERIAL)
    _create_variable(group, SERIAL, plan, kept)
    for dim, labels in grid.labels.items():
        _create_coordinate(group, dim, np.array(labels, object), "str", grid)
    for dim, values in grid.axes.items():
        _create_coordinate(
            group, dim, values, "int64" if PARAMETERS[dim].whole else "float64", grid
        )
    group.create_array(DONE, shape=(plan.blocks,), chunks=(1,), dtype="uint8", compressors=None)
    group.update_attributes(provenance.attributes(grid) | {"paradl_incomplete": False})
    with warnings.catch_warnings():
        # Zarr warns that other readers may not know consolidated metadata; they may ignore them.
        warnings.simplefilter("ignore", ZarrUserWarning)
        zarr.consolidate_metadata(group.store)
    return open_cube(url)


def open_cube(url: str) -> Cube:
    """Open a store that `create` made; InputError says what stands there instead."""
    group = _open_group(url)
    grid = Grid.from_definition(_definition(url, group))
    return Cube(url, group, grid, _stored_plan(grid, group))


def exists(url: str) -> bool:
    """Whether a cube stands at `url`. InputError where something else does.

    Nothing, an empty folder, and a cube whose making was cut short count as no cube.
    """
    path = Path(url)
    if "://" not in url and (not path.exists() or (path.is_dir() and not any(path.iterdir()))):
        return False
    return not _open_group(url).attrs.get("paradl_incomplete", False)


@lru_cache(maxsize=4)
def shared_cube(url: str, identity: str) -> Cube:
    """The open cube of this process; `identity` keeps an overwritten store from being mistaken."""
    return open_cube(url)


def _open_group(url: str) -> zarr.Group:
    try:
        group = zarr.open_group(url, mode="r+")
    except FileNotFoundError:
        raise InputError(
            "no cube here", where=url, advice="make one with: paradl sweep SPEC STORE"
        ) from None
    except PermissionError as error:
        raise InputError(f"cannot be opened: {error.strerror}", where=url) from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"not a Zarr group that can be read ({error})", where=url) from None
    if not {"paradl_format", "paradl_incomplete"} & set(group.attrs):
        raise InputError(
            "a Zarr group, but not one of paradl's; left untouched",
            where=url,
            advice="choose another place",
        )
    return group


def _definition(url: str, group: zarr.Group) -> dict[str, object]:
    if group.attrs.get("paradl_incomplete", False):
        raise InputError(
            "the making of this cube was cut short",
            where=url,
            advice="run the same paradl sweep again",
        )
    found = group.attrs["paradl_format"]
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


def _stored_plan(grid: Grid, group: zarr.Group) -> Plan:
    """The plan as it was when the store was made, whatever today's sizes of shards are."""
    today = plan_of(grid)
    array = _array(group, grid.spec.outputs[0])
    return Plan(
        today.dims, today.shape, array.shards or array.chunks, array.chunks, today.cell_bytes
    )


def _array(group: zarr.Group, name: str) -> "zarr.Array[Any]":
    array = group[name]
    assert isinstance(array, zarr.Array), name
    return array


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
