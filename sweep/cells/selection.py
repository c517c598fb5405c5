"""Slices of a cube or of its summary: values of its axes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.entries.quantity import Parameter
from grids.grid import LABELS, Grid, Index
from grids.reading.errors import InputError, suggest_name
from grids.reading.units import format_quantity
from sweep.cube.variables import Columns, Positions

if TYPE_CHECKING:
    import xarray as xr

Coordinates = Mapping[str, NDArray[Any]]
Selection = Mapping[str, object]

SHOWN = 8  # values of an axis that a message lists


def select(cube: "xr.Dataset", selection: Selection) -> "xr.Dataset":
    """The part of a cube at the values given for some axes, one or several each.

    Dimensions stay, and so does the order along them. InputError as of `locate_values`.
    """
    coordinates = {str(dim): cube[dim].values for dim in cube.dims}
    return cube.isel(locate_values(coordinates, selection, read_columns(cube)))


def read_columns(cube: "xr.Dataset") -> Columns:
    """The parameters that change together in a Dataset with a cube's dimensions."""
    return {
        str(name): (str(array.dims[0]), array.values)
        for name, array in cube.coords.items()
        if name in PARAMETERS and name not in cube.dims
    }


def locate_values(
    coordinates: Coordinates, selection: Selection, columns: Columns | None = None
) -> dict[str, Positions]:
    """The positions of the selected values along each axis, in the order of the axis.

    columns: parameters that change together; a value of one is all rows that have it.

    InputError for an unknown axis or a value that the axis does not have.
    """
    if not isinstance(selection, Mapping):
        raise InputError(
            f"expected a mapping of axes to values, got {selection!r}",
            where="selection",
            advice="such as {'pe': [64, 128]}",
        )
    columns, positions = columns or {}, dict[str, Positions]()
    for axis, wanted in selection.items():
        dim, values = columns.get(axis, (axis, coordinates.get(axis)))
        if values is None:
            raise InputError(
                f"no axis {axis!r} in this cube",
                where="selection",
                advice=suggest_name(axis, (*coordinates, *columns)),
            )
        at = _locate_along(values, axis, wanted, axis in columns)
        # Of several parameters in the same rows, those rows that have all their values.
        positions[dim] = np.intersect1d(at, positions[dim]) if dim in positions else at
        if not positions[dim].size:
            raise InputError(
                f"no row of {dim!r} has this {axis} and the other values",
                where="selection",
                advice=f"leave out {axis}, or select by {dim} alone",
            )
    return positions


def _locate_along(coordinate: NDArray[Any], axis: str, wanted: object, repeats: bool) -> Positions:
    """The positions of the wanted values along one axis, ascending and unique.

    repeats: a value may stand several times, each of which is meant.
    """
    given = wanted if isinstance(wanted, list | tuple) else [wanted]
    if not given:
        raise InputError("expected at least one value, got none", where=f"selection {axis}")
    values = [value for item in given for value in _split_values(coordinate, axis, item)]
    most = None if repeats else 1
    return np.unique(
        np.concatenate([_locate_value(coordinate, axis, value)[:most] for value in values])
    )


def find_nearest(
    coordinates: Coordinates, selection: Selection, columns: Columns | None = None
) -> dict[str, list[float]]:
    """The nearest values of each axis of numbers that lacks one of the selected values.

    columns: parameters that change together.

    InputError: a value that is no number of its axis.
    """
    nearest = {}
    for axis, wanted in selection.items():
        _, coordinate = (columns or {}).get(axis, (axis, coordinates.get(axis)))
        if coordinate is None or axis in LABELS:
            continue
        given = wanted if isinstance(wanted, list) else [wanted]
        values = [value for item in given for value in _split_values(coordinate, axis, item)]
        read = look_up_parameter(axis).read
        numbers = np.array([read(value, f"selection {axis}") for value in values])
        at = np.abs(coordinate - numbers[:, None]).argmin(axis=1)
        if not np.isclose(coordinate[at], numbers, rtol=1e-9, atol=0).all():
            nearest[axis] = np.unique(coordinate[at]).astype(float).tolist()
    return nearest


def _split_values(coordinate: NDArray[Any], axis: str, wanted: object) -> list[object]:
    """The values in one text; a label may have commas of its own."""
    if not isinstance(wanted, str) or (axis in LABELS and wanted in coordinate):
        return [wanted]
    return [part.strip() for part in wanted.split(",")]


def _locate_value(coordinate: NDArray[Any], axis: str, value: object) -> Positions:
    """The positions of a value along an axis; numbers match to a relative 1e-9."""
    if axis in LABELS:
        positions = np.flatnonzero(coordinate == str(value))
        advice = suggest_name(str(value), map(str, coordinate.tolist()))
    else:
        number = look_up_parameter(axis).read(value, f"selection {axis}")
        # `_advise_on_number` prints ten digits, which must be found again.
        positions = np.flatnonzero(np.isclose(coordinate, number, rtol=1e-9, atol=0))
        advice = _advise_on_number(axis, coordinate, number)
    if not positions.size:
        raise InputError(f"no {axis} {value!r} in this cube", where="selection", advice=advice)
    return positions


def _advise_on_number(axis: str, coordinate: NDArray[Any], number: float) -> str:
    """Advice on a value that an axis lacks: its values, or those around it."""
    nearby = np.sort(coordinate[np.argsort(np.abs(coordinate - number))[:SHOWN]])
    known = ", ".join(write_value(axis, value) for value in nearby.tolist())
    nearest = write_value(axis, float(coordinate[np.abs(coordinate - number).argmin()]))
    beyond = "" if coordinate.min() <= number <= coordinate.max() else _explain_end(nearest)
    if coordinate.size <= SHOWN:
        return f"{beyond}the nearest is {nearest}; known: {known}"
    ends = f"{write_value(axis, coordinate.min())} to {write_value(axis, coordinate.max())}"
    return (
        f"{beyond}known: {coordinate.size:,} values from {ends}, of which the nearest are {known}"
    )


def write_value(axis: str, value: float) -> str:
    """A value of an axis with its unit, precise enough to be selected by."""
    unit = look_up_parameter(axis).unit
    return f"{value:.10g}" if unit == "1" else format_quantity(value, unit, digits=10)


def write_place(axis: str, value: float) -> str:
    """A value of an axis in a sentence: `8 PEs`, `batch 32`, `inter_bandwidth 12.5 GB/s`."""
    if axis == "pe":
        return f"{value:,.0f} PE{'' if value == 1 else 's'}"
    parameter = look_up_parameter(axis)
    written = f"{value:,.0f}" if parameter.whole else format_quantity(value, parameter.unit)
    return f"{axis} {written}"


def look_up_parameter(axis: str) -> Parameter:
    """The parameter along an axis; of rows the number of a row."""
    return PARAMETERS.get(axis) or Parameter(axis, "1", "the number of a row", 0, whole=True)


def _explain_end(last: str) -> str:
    """Advice on a value beyond the end of an axis."""
    return f"the axis ends at {last}: add values to the spec and extend the store; "


def locate_row(grid: Grid, row: Mapping[str, Any]) -> Index:
    """The place of a row's labels in the design space; InputError: a label that it lacks."""
    model, dataset, system, strategy = (locate_label(grid, dim, row[dim]) for dim in LABELS)
    return model, dataset, system, strategy


def locate_label(grid: Grid, dim: str, label: str) -> int:
    """The position of a label in the design space; InputError: it has none."""
    if label not in grid.labels[dim]:
        raise InputError(
            f"{label!r} is no {dim} of the spec in the Dataset's attributes",
            advice="ask each cube by itself",
        )
    return grid.labels[dim].index(label)
