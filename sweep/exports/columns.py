"""Columns of an exported table: names, types, units and meaning, one schema for all formats.

A row is a cell: its labels and axes, whether it is feasible and what limits it, the time of an
epoch, and the cube's variables. No column is named with a reserved word of SQL, so that none has to
be quoted: the cube's `system`, `group`, `filter` and `limit` are renamed.
"""

from collections.abc import Sequence

import pyarrow as pa

from paradl.grids.grid import LABELS, Grid
from paradl.sweep.cube.coordinates import describe_coordinate
from paradl.sweep.cube.dimensions import AXES
from paradl.sweep.cube.variables import DERIVED, VARIABLES

# SQL reserves LIMIT and GROUP everywhere, SYSTEM in the standard (since SQL:1999) and in MySQL,
# FILTER and SEQUENCE in DuckDB.
RENAMED = {
    "system": "system_name",
    "group": "group_asked",
    "filter": "filter_degree",
    "sequence": "sequence_parallel",
    "limit": "limit_flags",
}
DEFINED, FEASIBLE, LIMIT_NAMES, EPOCH_TIME = "defined", "feasible", "limit_names", "epoch_time"


def make_schema(
    dims: Sequence[str], variables: Sequence[str], grid: Grid, *, marked: bool
) -> pa.Schema:
    """Return the columns of a table of cells.

    dims: axes, and parameters along zipped axes. variables: of the cube. marked: cells that cannot
    exist have rows too, and a column says so.
    """
    fields = [_describe_axis(dim, grid) for dim in dims]
    if marked:
        fields.append(describe_column(DEFINED, pa.bool_(), "there is such a configuration"))
    if "limit" in variables:
        fields.append(describe_column(FEASIBLE, pa.bool_(), DERIVED[FEASIBLE].long_name))
        words = "names of the flags, separated by ', '"
        fields.append(describe_column(LIMIT_NAMES, pa.string(), words))
    if {"comp_time", "comm_time"} <= set(variables):
        epoch = DERIVED[EPOCH_TIME]
        fields.append(describe_column(EPOCH_TIME, pa.float32(), epoch.long_name, epoch.units))
    for name in variables:
        variable = VARIABLES[name]
        kind, words = pa.from_numpy_dtype(variable.dtype), variable.long_name
        fields.append(describe_column(name_column(name), kind, words, variable.units))
    return pa.schema(fields)


def name_column(name: str) -> str:
    """Return the column of an axis or a variable of the cube."""
    return RENAMED.get(name, name)


def name_axis(column: str) -> str:
    """Return the axis that a column is named after; an axis' own name stays as it is."""
    return {name_column(axis): axis for axis in AXES}.get(column, column)


def describe_column(
    name: str, kind: pa.DataType, long_name: str, units: str = "", **facts: str
) -> pa.Field:
    """Make a column with facts as metadata. units: in CF's spelling, empty for texts and flags."""
    return pa.field(name, kind, metadata={"units": units, "long_name": long_name, **facts})


def _describe_axis(dim: str, grid: Grid) -> pa.Field:
    if dim in LABELS or grid.parameters[dim].words:
        # Labels and words of settings repeat in every row: a dictionary stores each of them once.
        kind = pa.dictionary(pa.int32(), pa.string())
    else:
        kind = pa.int64() if grid.parameters[dim].whole else pa.float64()
    facts = describe_coordinate(dim, grid)
    return describe_column(name_column(dim), kind, facts["long_name"], facts.get("units", ""))
