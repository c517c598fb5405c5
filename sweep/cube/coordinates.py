"""The cube's coordinates: the values along each dimension, and what their attributes say."""

import numpy as np

from grids.entries.parameters import PARAMETERS
from grids.grid import Grid
from sweep.cube.statistics import TABLE, Table
from sweep.cube.variables import Arrays, Attributes

# As UDUNITS spells them, which CF refers to; it has no unit for an operation.
CF_UNITS = {"1": "1", "s": "s", "B": "byte", "B/s": "byte s-1", "FLOP/s": "s-1"}

LABELLED = {
    "model": "network architecture",
    "dataset": "data set, which fixes the sample shape and the samples of an epoch",
    "system": "machine",
    "strategy": "parallelisation strategy",
}


def list_coordinates(grid: Grid) -> Arrays:
    """The values along each dimension, as they are stored."""
    # Objects, which are stored as texts of any length: see `create._create_labels`.
    labelled = {dim: np.array(values, object) for dim, values in grid.labels.items()}
    return labelled | {
        dim: values.astype("int64" if PARAMETERS[dim].whole else "float64")
        for dim, values in grid.axes.items()
    }


def describe_coordinate(dim: str, scaling: str) -> Attributes:
    """CF attributes of a dimension of the cube."""
    if dim in LABELLED:
        return {"long_name": LABELLED[dim]}
    if dim == "batch":
        meaning = "samples a replica, b" if scaling == "weak" else "samples a mini-batch, B"
        return {"long_name": meaning, "units": "1"}
    parameter = PARAMETERS[dim]
    return {"long_name": parameter.meaning, "units": CF_UNITS[parameter.unit]}


def describe_statistics(table: Table = TABLE) -> Attributes:
    """Attributes of the names of statistics: in their order, what each means."""
    meanings = {name: each.meaning for name, each in table.items()}
    return {"long_name": "what of a line of PE counts", "meanings": meanings}
