"""The columns of an exported table: names, units and meaning, one table for all its formats.

A row is a cell: its labels and axes, whether it is feasible and what limits it, the time of an
epoch, and the variables that the cube holds. No column is named by a reserved word of SQL, so that
none has to be quoted: the cube's `system`, `group` and `limit` have other names here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sweep.cube.coordinates import describe_coordinate
from sweep.cube.dimensions import AXES
from sweep.cube.variables import VARIABLES

# What the cube calls by words that SQL reserves: LIMIT and GROUP everywhere, SYSTEM in the standard
# (since SQL:1999) and in MySQL.
RENAMED = {"system": "system_name", "group": "group_asked", "limit": "limit_flags"}
DEFINED, FEASIBLE, LIMIT_NAMES, EPOCH_TIME = "defined", "feasible", "limit_names", "epoch_time"


@dataclass(frozen=True)
class Column:
    """What a column holds; units as CF writes them, empty for texts and flags."""

    name: str
    units: str
    long_name: str


def list_columns(
    dims: Sequence[str], variables: Sequence[str], scaling: str, *, marked: bool
) -> list[Column]:
    """The columns of a table of cells, in their order.

    dims, variables: of the cube. marked: rows of cells that cannot exist are there, and told apart.
    """
    return [
        *(_describe_axis(dim, scaling) for dim in dims),
        *([Column(DEFINED, "", "there is such a configuration")] if marked else []),
        *(_describe_limits() if "limit" in variables else []),
        *(
            [Column(EPOCH_TIME, "s", "time of an epoch: comp_time + comm_time")]
            if {"comp_time", "comm_time"} <= set(variables)
            else []
        ),
        *(
            Column(name_column(name), VARIABLES[name].units, VARIABLES[name].long_name)
            for name in variables
        ),
    ]


def name_column(name: str) -> str:
    """The column of an axis or a variable of the cube."""
    return RENAMED.get(name, name)


def name_axis(column: str) -> str:
    """The axis that an axis' or a column's name means."""
    return {name_column(axis): axis for axis in AXES}.get(column, column)


def _describe_axis(dim: str, scaling: str) -> Column:
    attributes = describe_coordinate(dim, scaling)
    return Column(name_column(dim), attributes.get("units", ""), attributes["long_name"])


def _describe_limits() -> list[Column]:
    return [
        Column(FEASIBLE, "", "nothing forbids the configuration"),
        Column(LIMIT_NAMES, "", "names of the flags, with ', ' between them"),
    ]
