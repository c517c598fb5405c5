"""Select slices of a cube, or of its summary, by values of its axes."""

from collections.abc import Mapping
from contextlib import suppress
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.axes import expand_axis, read_item
from paradl.grids.entries.layout_words import is_layout, parse_layout, write_layout
from paradl.grids.entries.names import split_labels
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.quantity import Parameter
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.grid import LABELS, Grid, Index
from paradl.grids.reading.errors import InputError, add_place, format_count, suggest_name
from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS
from paradl.sweep.cube.variables import Columns, Positions

if TYPE_CHECKING:
    import xarray as xr

Coordinates = Mapping[str, NDArray[Any]]
Selection = Mapping[str, object]

SHOWN = 8  # most values of an axis that a message lists


def select(cube: "xr.Dataset", selection: Selection) -> "xr.Dataset":
    """Part of a cube at one or several values of some axes; dimensions and their order stay.

    InputError: see `locate_values`.
    """
    coordinates = {str(dim): cube[dim].values for dim in cube.dims}
    return cube.isel(locate_values(coordinates, selection, read_columns(cube)))


def join_selection(selection: Selection | None, axes: Selection) -> Selection | None:
    """Return the values selected by a mapping and by keyword; None: all are.

    InputError: an axis is in both, or no mapping.
    """
    if not axes:
        return selection
    if selection is not None:
        _expect_mapping(selection)
    both = sorted({*(selection or ())} & {*axes})
    if both:
        raise InputError("selected twice", where=both[0], advice="by keyword, or in the mapping")
    return {**(selection or {}), **axes}


def read_columns(cube: "xr.Dataset") -> Columns:
    """Parameters of a cube that change together, with their dimension and values."""
    return {
        str(name): (str(array.dims[0]), array.values)
        for name, array in cube.coords.items()
        if name in PARAMETERS and name not in cube.dims
    }


def locate_values(
    coordinates: Coordinates, selection: Selection, columns: Columns | None = None
) -> dict[str, Positions]:
    """Ascending positions of the selected values along each axis.

    columns: parameters that change together; a value of one selects all rows with that value.
    InputError: an unknown axis, or a value that the axis does not have.
    """
    _expect_mapping(selection)
    columns, positions = columns or {}, dict[str, Positions]()
    for axis, written in selection.items():
        wanted = _number_layouts(axis, written, columns)
        dim, values = columns.get(axis, (axis, coordinates.get(axis)))
        if values is None:
            raise InputError(
                f"no axis {axis!r} in this cube",
                where="selection",
                advice=suggest_name(axis, (*coordinates, *columns)),
                page="not-in-the-cube",
            )
        at = _locate_along(values, axis, wanted, repeats=axis in columns)
        # Parameters of the same rows: keep the rows that match all of them.
        positions[dim] = np.intersect1d(at, positions[dim]) if dim in positions else at
        if not positions[dim].size:
            raise InputError(
                f"no row of {dim!r} has this {axis} and the other values",
                where="selection",
                advice=f"leave out {axis}, or select by {dim} alone",
            )
    return positions


def _number_layouts(axis: str, wanted: object, columns: Columns) -> object:
    """Return the row numbers of layouts that are written in words, other values as they are."""
    if isinstance(wanted, list | tuple):
        numbered = (_number_layouts(axis, item, columns) for item in wanted)
        return [n for item in numbered for n in (item if isinstance(item, list) else [item])]
    rows = {name: values for name, (dim, values) in columns.items() if dim == axis}
    if not (rows and isinstance(wanted, str) and is_layout(wanted)):
        return wanted
    stated, _ = parse_layout(wanted, f"selection {axis}")
    known = [values == stated[name] for name, values in rows.items() if name in stated]
    at = np.flatnonzero(np.logical_and.reduce(known))
    if not at.size:
        raise InputError(
            f"no {axis} {wanted!r} in this cube",
            where="selection",
            advice=f"select by its columns, such as {next(iter(rows))}",
            page="not-in-the-cube",
        )
    return at.tolist()


def _expect_mapping(selection: object) -> None:
    if not isinstance(selection, Mapping):
        raise InputError(
            f"expected a mapping of axes to values, got {selection!r}",
            where="selection",
            advice="such as {'pe': [64, 128]}",
        )


def _locate_along(coordinate: NDArray[Any], axis: str, wanted: object, repeats: bool) -> Positions:
    """Ascending, unique positions of the wanted values along one axis.

    repeats: select every position of a value, as parameters in rows may repeat it.
    """
    values = _list_values(coordinate, axis, wanted)
    if not values:
        raise InputError("expected at least one value, got none", where=f"selection {axis}")
    most = None if repeats else 1
    return np.unique(
        np.concatenate([_locate_value(coordinate, axis, value)[:most] for value in values])
    )


def find_nearest(
    coordinates: Coordinates, selection: Selection, columns: Columns | None = None
) -> dict[str, list[float]]:
    """Nearest values of each numeric axis that lacks a selected value, by axis.

    columns: parameters that change together. InputError: a value that is not a number.
    """
    nearest = {}
    for axis, wanted in selection.items():
        _, coordinate = (columns or {}).get(axis, (axis, coordinates.get(axis)))
        # Names have no nearest; `locate_values` refuses unknown names and axes.
        if coordinate is None or axis in LABELS:
            continue
        read = look_up_parameter(axis).read
        values = _list_values(coordinate, axis, _number_layouts(axis, wanted, columns or {}))
        numbers = np.array([read(value, f"selection {axis}") for value in values])
        at = np.abs(coordinate - numbers[:, None]).argmin(axis=1)
        if not np.isclose(coordinate[at], numbers, rtol=1e-9, atol=0).all():
            nearest[axis] = np.unique(coordinate[at]).astype(float).tolist()
    return nearest


def _list_values(coordinate: NDArray[Any], axis: str, wanted: object) -> list[object]:
    """One or several wanted values as a list; a text is split at its commas."""
    values: list[object] = []
    if axis == "strategy":  # in whatever words it is written
        wanted = _spell(coordinate, wanted)
    if isinstance(wanted, np.ndarray):
        wanted = wanted.ravel().tolist()
    for item in wanted if isinstance(wanted, list | tuple | range) else [wanted]:
        # A label may itself have commas: dgx-h100:precision=tf32,software=ddp.
        if not isinstance(item, str) or (axis in LABELS and item in coordinate):
            values.append(item)
        elif axis in LABELS:
            values += split_labels(item)
        else:
            with add_place(f"selection {axis}"):
                parts = [read_item(part.strip()) for part in item.split(",")]
            for part in parts:
                if isinstance(part, dict):
                    several = expand_axis(part, look_up_parameter(axis)).values
                    values += [write_value(axis, value) for value in several.tolist()]
                else:  # as written, for messages
                    values.append(part)
    return values


def _spell(coordinate: NDArray[Any], wanted: object) -> object:
    """Strategies by their labels, where these are the cube's."""
    if isinstance(wanted, list | tuple):
        return [_spell(coordinate, item) for item in wanted]
    if not isinstance(wanted, str) or wanted in coordinate:
        return wanted
    with suppress(InputError):
        label = parse_strategy(wanted).label
        return label if label in coordinate else wanted
    return wanted


def _locate_value(coordinate: NDArray[Any], axis: str, value: object) -> Positions:
    """Positions of a value along an axis; numbers match to a relative 1e-9."""
    if axis in LABELS:
        positions = np.flatnonzero(coordinate == str(value))
        advice = suggest_name(str(value), map(str, coordinate.tolist()))
    else:
        number = look_up_parameter(axis).read(value, f"selection {axis}")
        # 1e-9, since values that `_advise_on_number` prints, with ten digits, must match.
        positions = np.flatnonzero(np.isclose(coordinate, number, rtol=1e-9, atol=0))
        advice = _advise_on_number(axis, coordinate, number)
    if not positions.size:
        what = f"no {axis} {value!r} in this cube"
        raise InputError(what, where="selection", advice=advice, page="not-in-the-cube")
    return positions


def _advise_on_number(axis: str, coordinate: NDArray[Any], number: float) -> str:
    """Advice for a value that an axis lacks: the nearest, and its values, or the ends of many."""
    distinct = np.unique(coordinate)  # rows of parameters repeat values
    written = [write_value(axis, value) for value in distinct.tolist()]
    nearest, *others = (written[n] for n in np.argsort(np.abs(distinct - number))[:2])
    is_inside = distinct[0] <= number <= distinct[-1]
    beyond = "" if is_inside else f"the axis ends at {nearest}: extend the store to add values; "
    if len(written) <= SHOWN:
        return f"{beyond}the nearest is {nearest}; known: {', '.join(written)}"
    known = f"{len(written):,} values from {written[0]} to {written[-1]}"
    return f"{beyond}the nearest is {nearest}, then {others[0]}; known: {known}"


def write_value(axis: str, value: float) -> str:
    """Format a value of an axis with its unit, with enough digits to select it."""
    unit = look_up_parameter(axis).unit
    return f"{value:.10g}" if unit == "1" else format_quantity(value, unit, digits=10)


def write_choice(axis: str, value: Any, columns: Columns) -> str:
    """Write a value to select it by: of a row of a layout its words."""
    rows = {name: values for name, (dim, values) in columns.items() if dim == axis}
    if not rows or not rows.keys() <= LAYOUT_COLUMNS.keys():
        return str(value)
    row = {name: int(values[value]) for name, values in rows.items()}
    # Replicas are the PEs that remain, whatever their number.
    usual = {name: column.usual for name, column in LAYOUT_COLUMNS.items() if name != "data"}
    return f'"{write_layout(usual | row)}"'


def write_place(axis: str, value: float) -> str:
    """Format a value for a sentence: `8 PEs`, `batch 32`, `inter_bandwidth 12.5 GB/s`."""
    if axis == "pe":
        return format_count(round(value), "PE")
    parameter = look_up_parameter(axis)
    written = f"{value:,.0f}" if parameter.whole else format_quantity(value, parameter.unit)
    return f"{axis} {written}"


def look_up_parameter(axis: str) -> Parameter:
    """Parameter along an axis; an axis of rows has the number of the row."""
    return PARAMETERS.get(axis) or Parameter(axis, "1", "the number of a row", 0, whole=True)


def read_axis(row: Mapping[str, object], axis: str) -> float:
    """Value of an answer's row along an axis, where it has one."""
    value = row[axis]
    assert isinstance(value, Real)
    return float(value)


def locate_row(grid: Grid, row: Mapping[str, object]) -> Index:
    """Positions of a row's labels in the design space. InputError: an unknown label."""
    model, dataset, system, strategy = (locate_label(grid, dim, str(row[dim])) for dim in LABELS)
    return model, dataset, system, strategy


def locate_label(grid: Grid, dim: str, label: str) -> int:
    """Position of a label in the design space. InputError: an unknown label."""
    if label not in grid.labels[dim]:
        raise InputError(
            f"{dim} {label!r} is not in the spec that the Dataset's attributes state",
            advice="ask about each cube separately",
        )
    return grid.labels[dim].index(label)
