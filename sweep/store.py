"""The store: a Zarr v3 group that holds the cube, complete in itself.

Every variable is cut into the plan's shards; a block's data are written before its done-mark (one
byte in `progress/done`, a file of its own), so that a killed run has lost no block that is marked.
The root attributes hold the whole spec: any process that can reach the store can compute any block
of it.
"""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from numpy.typing import NDArray

from grids.errors import InputError
from grids.grid import Grid
from grids.problem import LAYERED
from sweep import provenance, variables
from sweep.plan import Plan, Region, make_plan
from sweep.remote import is_remote, opening
from sweep.variables import Arrays

Mode = Literal["r", "r+"]

# The time on one PE, which speedup is counted from, varies along all dimensions but these.
SERIAL = "serial_time"
NOT_SERIAL = ("strategy", "pe")
DONE = "progress/done"
SUMMARY = "summary"
# Blocks along the PE counts: a line of them that spans several has a summary from each.
PART = "pe_part"


@dataclass(frozen=True, eq=False)
class Cube:
    """An open store with its grid and plan."""

    url: str
    group: zarr.Group
    grid: Grid
    plan: Plan

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
        return np.asarray(_array(self.group, DONE)[:]).astype(bool)

    def write(self, block: int, arrays: Arrays, summary: Arrays) -> None:
        """Write a block's variables and summary, then its done-mark."""
        region = self.plan.region(block)
        for name, values in arrays.items():
            place = serial_region(self.plan, region) if name == SERIAL else region
            _array(self.group, name)[place] = values
        for name, values in summary.items():
            _array(self.group, f"{SUMMARY}/{name}")[summary_region(self.plan, region)] = values
        _array(self.group, DONE)[block] = 1


def plan_of(grid: Grid) -> Plan:
    """How the grid's cube is cut into blocks."""
    cell_bytes = sum(variables.dtype(name).itemsize for name in grid.spec.outputs)
    layers = max(map(len, grid.fitting.values()), default=1)
    return make_plan(grid.dims, grid.shape, cell_bytes, 2, layers=layers, layered=LAYERED)


def serial_region(plan: Plan, region: Region) -> Region:
    """The part of `serial_time` that belongs to a block."""
    return tuple(each for dim, each in zip(plan.dims, region, strict=True) if dim not in NOT_SERIAL)


def summary_region(plan: Plan, region: Region) -> Region:
    """The part of a summary's arrays that belongs to a block."""
    parts = dict(zip(plan.dims, region, strict=True))
    part = parts["pe"].start // plan.shard[plan.dims.index("pe")]
    parts["pe"] = slice(part, part + 1)
    return tuple(parts.values())


def open_cube(url: str, mode: Mode = "r") -> Cube:
    """Open a store that `creation.create` made; InputError says what stands there instead."""
    group = open_group(url, mode)
    if group is None:
        raise InputError("no cube here", where=url, advice="make one with: paradl sweep SPEC STORE")
    grid = Grid.from_definition(_definition(url, group))
    return Cube(url, group, grid, _stored_plan(url, grid, group))


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
    except (OSError, ValueError, TypeError, KeyError, ImportError) as error:
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


def _stored_plan(url: str, grid: Grid, group: zarr.Group) -> Plan:
    """The plan as it was when the store was made, whatever today's sizes of shards are."""
    today = plan_of(grid)
    missing = [name for name in (*grid.spec.outputs, SERIAL, DONE, SUMMARY) if name not in group]
    if missing:
        raise InputError(
            f"damaged: the array {missing[0]!r} is gone",
            where=url,
            advice="sweep again with --overwrite",
        )
    made = json.loads(str(group.attrs["paradl_plan"]))
    return replace(today, shard=tuple(made["shard"]), chunk=tuple(made["chunk"]))


def _array(group: zarr.Group, name: str) -> "zarr.Array[Any]":
    array = group[name]
    assert isinstance(array, zarr.Array), name
    return array
