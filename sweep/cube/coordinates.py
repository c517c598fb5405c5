"""Coordinates of a cube: the values along each dimension, and their attributes."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.quantity import Parameter
from paradl.sweep.cube.statistics import TABLE, Table
from paradl.sweep.cube.variables import Arrays, Attributes, Columns

if TYPE_CHECKING:
    import xarray as xr

    from paradl.grids.grid import Grid

# Spelled as in UDUNITS, which CF refers to, and which has no unit for an operation.
CF_UNITS = {"1": "1", "s": "s", "B": "byte", "B/s": "byte s-1", "FLOP/s": "s-1"}

LABELLED = {
    "model": "network architecture",
    "dataset": "data set, which fixes the sample shape and the samples of an epoch",
    "system": "machine",
    "strategy": "parallelisation strategy",
}


def list_coordinates(grid: "Grid") -> Arrays:
    """Return the stored values along each dimension; a zipped axis has row numbers."""
    # Objects, which are stored as texts of any length (`creation._create_labels`).
    labelled = {dim: np.array(values, object) for dim, values in grid.labels.items()}
    return labelled | {
        dim: _type_values(grid.parameters[dim], values) for dim, values in grid.axes.items()
    }


def list_columns(grid: "Grid", along: Arrays | None = None) -> Columns:
    """Return the dimension and values of each parameter along a zipped axis.

    along: coordinates of a part of the cube; None: the whole cube.
    """
    return {
        name: (dim, _type_values(PARAMETERS[name], values if along is None else values[along[dim]]))
        for dim, rows in grid.rows.items()
        for name, values in rows.columns.items()
    }


def index_rows(cube: "xr.Dataset", grid: "Grid") -> "xr.Dataset":
    """Index the Dataset by each parameter of its zipped axes, for `ds.sel(group=8)`."""
    for name in list_columns(grid):
        cube = cube.set_xindex(name)
    return cube


def _type_values(parameter: Parameter, values: NDArray[Any]) -> NDArray[Any]:
    return values.astype("int64" if parameter.whole else "float64")


def describe_coordinate(name: str, grid: "Grid") -> Attributes:
    """Return CF attributes of a dimension, or of a parameter along a zipped axis."""
    if name in LABELLED:
        return {"long_name": LABELLED[name]}
    if name == "batch":
        weak = grid.spec.scaling == "weak"
        meaning = "samples per replica, b" if weak else "samples per mini-batch, B"
        return {"long_name": meaning, "units": "1"}
    parameter = grid.parameters[name]
    return {"long_name": parameter.meaning, "units": CF_UNITS[parameter.unit]}


def describe_statistics(table: Table = TABLE) -> Attributes:
    """Return the attributes of the names of statistics, with their meanings in order."""
    meanings = {name: row.meaning for name, row in table.items()}
    return {"long_name": "statistic of a line of PE counts", "meanings": meanings}
