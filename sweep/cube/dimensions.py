"""Restoring the dimensions of a slice to those of a cube.

xarray turns the coordinate of a single selected value into a scalar, and orders an axis as a user
asks. Questions count along axes, so all must exist, with ascending PE counts.
"""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from paradl.grids.convergence.entry import Convergence, Pair
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.rows import list_columns
from paradl.sweep.cube.plan import NOT_SERIAL, SERIAL
from paradl.sweep.cube.variables import Arrays

if TYPE_CHECKING:
    import xarray as xr

# All possible axes in the order of a cube's dimensions; zipped axes, with any name, come last.
AXES = (*LABELS, *PARAMETERS)
ALWAYS = (*LABELS, "pe", "batch")
CELLS = (
    *("comp_time", "comm_time", "memory", "limit", "replicas", "group_size", "segment_count"),
    *("epochs", SERIAL),
)


def read_design(cube: object) -> Grid:
    """Return the design space of a cube, or of a slice of one. InputError: it is neither."""
    attributes = _expect_dataset(cube).attrs
    if "paradl_spec" not in attributes:
        raise InputError(
            "this Dataset is not a cube of paradl: it has no attribute paradl_spec",
            advice="open one with paradl.open_dataset(STORE)",
        )
    return Grid.from_definition(json.loads(attributes["paradl_spec"]))


def expect_laws(grid: Grid, where: str = "") -> Mapping[Pair, Convergence]:
    """Return the laws of epochs, by model and data set. InputError, naming `where`: none."""
    if not grid.convergences:
        raise InputError(
            "no epochs to a target are known",
            where=where,
            advice="in a spec, or a question without a store, state a law of them (convergence: "
            "auto, or a file of your own)",
        )
    return grid.convergences


def read_axes(cube: object) -> Arrays:
    """Return the values along each axis, in a cube's order. InputError: as for `restore_axes`."""
    values = _read_values(_expect_axes(cube))
    return values | {"pe": np.sort(values["pe"])}


def restore_axes(cube: object, names: Collection[str] = CELLS) -> "xr.Dataset":
    """Return a Dataset with all dimensions of a cube, of size 1 for scalars.

    names: variables to keep, if it has them. InputError: not a Dataset, a missing axis, an unknown
    dimension, no `serial_time`, or a `limit` that has other numbers than flags.
    """
    import xarray as xr

    cube = _expect_axes(cube)
    if SERIAL not in cube:
        raise InputError(
            f"the Dataset has no variable {SERIAL!r}, from which efficiency is computed",
            advice="keep it, or reopen the store with paradl.open_dataset(STORE)",
        )
    if "limit" in cube:
        expect_flags(cube["limit"])
    values = _read_values(cube)
    arrays = {name: _expand_array(cube[name], list(values)) for name in names if name in cube}
    columns = {
        name: (dim, np.atleast_1d(cube[name].values))
        for dim, parameters in _list_rows(cube).items()
        for name in parameters
        if name in cube.coords
    }
    restored = xr.Dataset(arrays, coords=values | columns, attrs=cube.attrs)
    # Those of cubes ascend. `sortby` copies every array, so it is called only if needed.
    ascending = (np.diff(values["pe"]) >= 0).all()
    return restored if ascending else restored.sortby("pe")


def _expect_dataset(cube: object) -> "xr.Dataset":
    import xarray as xr

    if not isinstance(cube, xr.Dataset):
        raise InputError(
            f"expected a Dataset, or the place of a store, got {type(cube).__name__}",
            advice="open one with paradl.open_dataset(STORE)",
        )
    return cube


def _expect_axes(cube: object) -> "xr.Dataset":
    """Refuse what is no Dataset, lacks an axis, or has an unknown dimension."""
    dataset = _expect_dataset(cube)
    swept = _read_axes(dataset)
    known = list(dict.fromkeys([*AXES, *swept]))
    for name in known:
        if (name in ALWAYS or name in swept) and name not in dataset.coords:
            raise InputError(
                f"the Dataset lacks the coordinate {name!r}, an axis of every cube",
                advice="select without drop=True, and do not reduce over axes",
            )
    for dim in map(str, dataset.dims):
        if not dataset.sizes[dim]:
            raise InputError(f"the Dataset has no values along {dim!r}", advice="select some")
        if dim not in known or dim not in dataset.coords:
            raise InputError(
                f"the Dataset has the dimension {dim!r}, which is not an axis of a cube",
                advice="select along one axis at a time",
            )
    return dataset


def _read_values(cube: "xr.Dataset") -> Arrays:
    """Return the values along each axis; a parameter along a zipped axis is none itself."""
    rows = _list_rows(cube)
    columns = {name for names in rows.values() for name in names}
    axes = [name for name in AXES if name in cube.coords and name not in columns]
    return {name: np.atleast_1d(cube[name].values) for name in (*axes, *sorted(rows))}


def list_dims(restored: "xr.Dataset") -> list[str]:
    """List the dimensions of a restored Dataset, in a cube's order."""
    known = [dim for dim in AXES if dim in restored.dims]
    return [*known, *sorted({*map(str, restored.dims)} - {*known})]


def _list_rows(cube: "xr.Dataset") -> dict[str, tuple[str, ...]]:
    """Return the parameters along each zipped axis."""
    swept = _read_axes(cube)
    return {name: list_columns(form) for name, form in swept.items() if name not in AXES}


def _read_axes(cube: "xr.Dataset") -> dict[str, object]:
    """Return the axes of the Dataset's spec, as they are written."""
    axes: dict[str, object] = json.loads(cube.attrs.get("paradl_spec", "{}")).get("axes", {})
    return axes


def _expand_array(array: "xr.DataArray", axes: list[str]) -> "xr.DataArray":
    """Expand an array to the dimensions that it has in a cube, without coordinates."""
    dims = [dim for dim in axes if array.name != SERIAL or dim not in NOT_SERIAL]
    bare = array.drop_vars(list(array.coords))
    return bare.expand_dims([dim for dim in dims if dim not in array.dims]).transpose(*dims)


def expect_flags(limit: "xr.DataArray") -> None:
    """Refuse flags that an operation has turned into other numbers."""
    if limit.dtype != np.uint16:
        raise InputError(
            f"limit: expected flags of type uint16, got {limit.dtype}",
            advice="select with sel or isel; where, interp and mean change flags into numbers",
        )
