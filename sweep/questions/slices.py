"""Slices of a stored cube: `--sel axis=value`, and one labelled combination at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grids.errors import InputError, nearest
from grids.grid import LABELS
from grids.parameters import PARAMETERS
from kernels import FORBIDS, Limit

NEEDED = ("comp_time", "comm_time", "memory", "limit")


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


@dataclass(frozen=True)
class Slice:
    """One model, dataset, system and strategy: arrays over pe first, then all other axes, flat.

    labels: the four names. axes: the other axes' values of each flat position.
    """

    labels: dict[str, str]
    pe: NDArray[np.int64]
    axes: dict[str, NDArray[Any]]
    comp_time: NDArray[np.float64]
    comm_time: NDArray[np.float64]
    memory: NDArray[np.float64]
    limit: NDArray[np.uint8]
    serial_time: NDArray[np.float64]

    @property
    def epoch_time(self) -> NDArray[np.float64]:
        """[pe, others] seconds."""
        return self.comp_time + self.comm_time

    @property
    def allowed_time(self) -> NDArray[np.float64]:
        """Epoch time where nothing forbids a cell, else infinite."""
        allowed = ((self.limit & int(FORBIDS)) == 0) & np.isfinite(self.epoch_time)
        return np.where(allowed, self.epoch_time, np.inf)


def slices(cube: xr.Dataset) -> Iterator[Slice]:
    """Every labelled combination that can exist, one in memory at a time."""
    missing = [name for name in NEEDED if name not in cube]
    if missing:
        raise InputError(
            f"the cube has no variable {missing[0]!r}",
            advice=f"sweep with outputs: [{', '.join(NEEDED)}]",
        )
    for positions in product(*(range(cube.sizes[dim]) for dim in LABELS)):
        part = cube.isel(dict(zip(LABELS, positions, strict=True))).load()
        found = _slice(part)
        if not (found.limit == Limit.INCOMPATIBLE).all():
            yield found


def _slice(part: xr.Dataset) -> Slice:
    others = [str(dim) for dim in part.limit.dims if dim != "pe"]
    flat = (
        part[[*NEEDED]].stack(other=others) if others else part[[*NEEDED]].expand_dims("other", -1)
    )
    serial = (
        part.serial_time.stack(other=others) if others else part.serial_time.expand_dims("other")
    )
    arrays = {name: flat[name].transpose("pe", "other").values for name in NEEDED}
    return Slice(
        labels={dim: str(part[dim].values) for dim in LABELS},
        pe=part.pe.values,
        axes={dim: flat[dim].values for dim in others},
        serial_time=serial.values.astype(float),
        limit=arrays.pop("limit"),
        **{name: values.astype(float) for name, values in arrays.items()},
    )
