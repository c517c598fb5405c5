"""Tables of what a cube holds: output variables, statistics of its summary, coordinates.

To add one: its name, and where an answer has it, in `kernels.names.stored` (the outputs of a spec
follow); a row of `VARIABLES` here. Test: tests/sweep/engine/test_run.py, every cell equals the
oracle. A variable that follows from stored ones is not stored: a row of `DERIVED` here, a property
in `sweep.cube.derived_quantities`. Test: tests/sweep/cube/test_derived_quantities.py.

A summary keeps statistics of each line of PE counts. Readers find them by name
(`summary/statistic`) and ignore unknown names, so that adding one breaks no store: add its name to
`kernels.names.statistics`, its formula to `kernels.blocks.summary`, and a row here. VERSION changes
only if a name comes to mean something else. An objective is what a line's best PE count minimises:
`epoch_time`, or `train_time` where a law of epochs is known. Statistics without an objective count
what is feasible.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.quantity import Parameter
from paradl.grids.outputs import ELASTICITIES, INTERVALS
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.kernels.names.statistics import BEST, COUNTS, STATISTICS

if TYPE_CHECKING:
    import xarray as xr
    from zarr.core.common import JSON

    from paradl.grids.grid import Grid

Arrays = dict[str, NDArray[Any]]
# By name: a dimension, and values along it.
Columns = dict[str, tuple[str, NDArray[Any]]]
Positions = NDArray[np.int64]

# Computed in double precision and rounded once (`kernels.blocks.outputs`), to 2**-24 = 6e-8.
SINGLE: np.dtype[np.generic] = np.dtype("float32")
# One bit for each of the nine limits (`kernels.names.flags`).
FLAGS: np.dtype[np.generic] = np.dtype("uint16")


@dataclass(frozen=True)
class Variable:
    """Storage and attributes of a variable.

    units: in CF's spelling. fill_value: read from blocks that were not written, and so means that
    the configuration cannot exist.
    """

    long_name: str
    units: str
    dtype: np.dtype[np.generic] = SINGLE
    fill_value: float = np.nan

    @property
    def attributes(self) -> "dict[str, JSON]":
        """CF attributes."""
        return {"long_name": self.long_name, "units": self.units}


@dataclass(frozen=True)
class Flags(Variable):
    """A variable with one bit per limit, and without units."""

    units: str = ""
    dtype: np.dtype[np.generic] = FLAGS
    fill_value: float = int(Limit.INCOMPATIBLE)

    @property
    def attributes(self) -> "dict[str, JSON]":
        """CF attributes: masks and meanings in the order of `Limit`."""
        return {
            "long_name": self.long_name,
            "flag_masks": [limit.value for limit in Limit],
            "flag_meanings": " ".join(name_limits(~0)),
            "comment": "uneven and batch_exceeds_dataset are marks, which forbid nothing",
        }


def name_limits(flags: int) -> list[str]:
    """List the names of the limits in a flag."""
    return [limit.name.lower() for limit in Limit if limit & flags and limit.name]


def find_allowed(flags: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells nothing forbids [cell]."""
    return np.asarray((flags & np.uint16(FORBIDS)) == 0)


def join_limits(flags: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """Return texts of limits' names, separated by ', ', and each cell's position in them [cell]."""
    # One text per distinct flag, of which there are few.
    kinds, at = np.unique(flags, return_inverse=True)
    return [", ".join(name_limits(int(kind))) for kind in kinds], at


def _make_percentile(time: str, percent: int) -> Variable:
    of = _name_time(time)
    return Variable(f"median of {of}" if percent == 50 else f"{percent}th percentile of {of}", "s")


def _make_elasticity(target: str, parameter: str) -> Variable:
    of = _name_time(target)
    return Variable(f"elasticity d log y / d log x of {of} in {parameter}", "1")


def _name_time(name: str) -> str:
    # Cubes store no sums, so these are named in words.
    return f"the {SUMS[name].long_name}" if name in SUMS else name


SUMS = {
    "epoch_time": Variable("time of an epoch", "s"),
    "train_time": Variable("time to the target", "s"),
}
VARIABLES: dict[str, Variable] = {
    "comp_time": Variable("time computing, per epoch", "s"),
    "comm_time": Variable("time communicating, per epoch", "s"),
    "memory": Variable("memory of the fullest PE", "byte"),
    "limit": Flags("what forbids the configuration"),
    "serial_time": Variable("time of an epoch on one PE", "s"),
    **{name: Variable(f"{term.meaning}, per epoch", "s") for name, term in EVERY_TERM.items()},
    **{name: _make_percentile(*of) for name, of in INTERVALS.items()},
    **{name: _make_elasticity(*of) for name, of in ELASTICITIES.items()},
    "epochs": Variable("epochs to the target", "1"),
    "train_time": SUMS["train_time"],
    "replicas": Variable("replicas of the model (data-parallel groups), p1", "1"),
    "group_size": Variable("PEs in a group, p2", "1"),
    "segment_count": Variable("segments of a pipeline, S", "1"),
}
# Computed from variables on reading (`derived_quantities.py`), in the order of the accessor.
DERIVED: dict[str, Variable] = {
    "epoch_time": SUMS["epoch_time"],
    "iteration_time": Variable("time of an iteration", "s"),
    "train_time": SUMS["train_time"],
    "throughput": Variable("samples per second", "s-1"),
    "speedup": Variable("speedup over one PE", "1"),
    "efficiency": Variable("parallel efficiency", "1"),
    "pe_hours": Variable("PE-hours of an epoch", "hour"),
    "cost": Variable("cost of an epoch", "1"),
    "memory_share": Variable("share of a PE's memory that is needed", "1"),
    "global_batch": Variable("samples per iteration", "1"),
    "replicas": VARIABLES["replicas"],
    "iterations": Variable("iterations per epoch", "1"),
    "epochs": VARIABLES["epochs"],
    "epochs_alone": Variable("epochs to the target on one PE", "1"),
    "feasible": Variable("whether nothing forbids the configuration", "1"),
    "bottleneck": Variable("largest part of the time", "1"),
}


VERSION = 1


@dataclass(frozen=True)
class Statistic:
    """A number that a summary keeps of a line of PE counts.

    nothing: its value where model and data set do not fit each other. objective: may be empty.
    """

    dtype: str
    nothing: float
    meaning: str
    objective: str = ""


Table = Mapping[str, Statistic]

# Kept of the best PE count: the fields of `kernels.blocks.summary.Best`.
OF_BEST = {
    "pe": Statistic("int64", 0, "PE count with the least {}; 0: nothing is feasible"),
    "time": Statistic("float32", np.nan, "least {}"),
    "comp_time": Statistic("float32", np.nan, "time computing, per epoch, at the least {}"),
    "memory": Statistic("float32", np.nan, "memory of the fullest PE at the least {}"),
    "epochs": Statistic("float32", np.nan, "epochs to the target at the least {}"),
    "efficient_pe": Statistic(
        "int64", 0, "largest PE count with half of the ideal speedup, by {}; 0: none"
    ),
}
TABLE: Table = {
    **{
        name: replace(
            OF_BEST[field],
            meaning=OF_BEST[field].meaning.format(SUMS[objective].long_name),
            objective=objective,
        )
        for objective, names in BEST.items()
        for field, name in names.items()
    },
    "largest_pe": Statistic("int64", 0, "largest feasible PE count; 0: nothing is feasible"),
    "forbidden_by": Statistic(
        "uint16", int(Limit.INCOMPATIBLE), "flags that forbid the next PE count"
    ),
    **dict.fromkeys(COUNTS, Statistic("int64", 0, "PE counts that the limit forbids or marks")),
}


def list_objectives(table: Table = TABLE) -> list[str]:
    """List the objectives of a table's statistics."""
    objectives = (statistic.objective for statistic in table.values())
    return list(dict.fromkeys(filter(None, objectives)))


def type_statistics(values: NDArray[np.float64], names: Iterable[str] = STATISTICS) -> Arrays:
    """Return values [statistic, ...] by name, with their own types; unknown names are left out.

    NaN marks a model and data set that do not fit each other.
    """
    # Stored as float64, exact for whole numbers to 2**53; PE counts end at 2**40.
    rows = ((name, row) for name, row in zip(names, values, strict=True) if name in TABLE)
    return {
        name: np.where(np.isnan(row), TABLE[name].nothing, row).astype(TABLE[name].dtype)
        for name, row in rows
    }


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

    along: coordinates of a part of the cube.
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


def describe_coordinate(name: str, grid: "Grid") -> dict[str, str]:
    """Return CF attributes of a dimension, or of a parameter along a zipped axis."""
    if name in LABELLED:
        return {"long_name": LABELLED[name]}
    if name == "batch":
        weak = grid.spec.scaling == "weak"
        meaning = "samples per replica, b" if weak else "samples per mini-batch, B"
        return {"long_name": meaning, "units": "1"}
    parameter = grid.parameters[name]
    return {"long_name": parameter.meaning, "units": CF_UNITS[parameter.unit]}


def describe_statistics(table: Table = TABLE) -> "dict[str, JSON]":
    """Return the attributes of the names of statistics, with their meanings in order."""
    meanings: dict[str, JSON] = {name: row.meaning for name, row in table.items()}
    return {"long_name": "statistic of a line of PE counts", "meanings": meanings}
