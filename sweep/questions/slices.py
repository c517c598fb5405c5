"""Slices of a cube or of its summary: `--sel axis=value`."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from grids.errors import InputError, nearest
from grids.grid import LABELS
from grids.parameters import PARAMETERS


def select(cube: xr.Dataset, selection: Mapping[str, object]) -> xr.Dataset:
    """The part of a cube where every axis has the value (or one of the values) given for it.

    Dimensions stay, and so does the order along them. InputError for an unknown axis or a value
    that the axis does not have.
    """
    for axis, wanted in selection.items():
        if axis not in cube.dims:
            raise InputError(
                f"no axis {axis!r} in this cube",
                where="--sel",
                advice=nearest(axis, map(str, cube.dims)),
            )
        given = wanted if isinstance(wanted, list | tuple) else [wanted]
        values = [value for each in given for value in _listed(cube, axis, each)]
        cube = cube.isel({axis: sorted({_position(cube, axis, value) for value in values})})
    return cube


def _listed(cube: xr.Dataset, axis: str, wanted: object) -> list[object]:
    """One value, or several in one text; a label may have commas of its own."""
    if not isinstance(wanted, str) or (axis in LABELS and wanted in cube[axis].values):
        return [wanted]
    return [part.strip() for part in wanted.split(",")]


def _position(cube: xr.Dataset, axis: str, value: object) -> int:
    coordinate = cube[axis].values
    if axis in LABELS:
        found = np.flatnonzero(coordinate == str(value))
    else:
        number = PARAMETERS[axis].read(value, f"--sel {axis}")
        found = np.flatnonzero(np.isclose(coordinate, number, rtol=1e-9))
    if not found.size:
        known = nearest(str(value), map(str, coordinate.tolist()))
        raise InputError(f"no {axis} {value!r} in this cube", where="--sel", advice=known)
    return int(found[0])
