"""The cube's coordinates: the values along each dimension, and what their attributes say."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.entries.quantity import Parameter
from sweep.cube.statistics import TABLE, Table
from sweep.cube.variables import Arrays, Attributes, Columns

if TYPE_CHECKING:
    import xarray as xr

    from grids.grid import Grid

# As UDUNITS spells them, which CF refers to; it has no unit for an operation.
CF_UNITS = {"1": "1", "s": "s", "B": "byte", "B/s": "byte s-1", "FLOP/s": "s-1"}

LABELLED = {
    "model": "network architecture",
    "dataset": "data set, which fixes the sample shape and the samples of an epoch",
    "system": "machine",
    "strategy": "parallelisation strategy",
}


def list_coordinates(grid: "Grid") -> Arrays:
    """The values along each dimension, as they are stored; rows by their numbers."""
    # Objects, which are stored as texts of any length: see `creation._create_labels`.
    labelled = {dim: np.array(values, object) for dim, values in grid.labels.items()}
    return labelled | {
        dim: _type_values(grid.parameters[dim], values) for dim, values in grid.axes.items()
    }


def list_columns(grid: "Grid", along: Arrays | None = None) -> Columns:
    """Each parameter that changes with others: its dimension, and its values there.

    along: the coordinates of a part of the cube; None: of all of it.
    """
    return {
        name: (dim, _type_values(PARAMETERS[name], values if along is None else values[along[dim]]))
        for dim, rows in grid.rows.items()
        for name, values in rows.columns.items()
    }


def index_rows(cube: "xr.Dataset", grid: "Grid") -> "xr.Dataset":
    """The Dataset with an index on each parameter of its rows: `ds.sel(group=8)`."""
    for name in list_columns(grid):
        cube = cube.set_xindex(name)
    return cube


def _type_values(parameter: Parameter, values: NDArray[Any]) -> NDArray[Any]:
    """Counts as whole numbers."""
    return values.astype("int64" if parameter.whole else "float64")


def describe_coordinate(name: str, grid: "Grid") -> Attributes:
    """CF attributes of a dimension of the cube, or of a parameter along one."""
    if name in LABELLED:
        return {"long_name": LABELLED[name]}
    if name == "batch":
        weak = grid.spec.scaling == "weak"
        meaning = "samples a replica, b" if weak else "samples a mini-batch, B"
        return {"long_name": meaning, "units": "1"}
    parameter = grid.parameters[name]
    return {"long_name": parameter.meaning, "units": CF_UNITS[parameter.unit]}


def describe_statistics(table: Table = TABLE) -> Attributes:
    """Attributes of the names of statistics: in their order, what each means."""
    meanings = {name: row.meaning for name, row in table.items()}
    return {"long_name": "what of a line of PE counts", "meanings": meanings}
