"""Table of the cube's output variables: name, meaning, units, type and fill value.

To add one: its name, and where an answer has it, in `kernels.names.stored` (the outputs of a spec
follow); a row of `VARIABLES` here. Test: tests/sweep/engine/test_run.py, every cell equals the
oracle. A variable that follows from stored ones is not stored: a row of `DERIVED` here, a property
in `sweep.cube.derived_quantities`. Test: tests/sweep/cube/test_derived_quantities.py.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.outputs import ELASTICITIES, INTERVALS
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.names.layout_terms import EVERY_TERM

Attributes = dict[str, Any]
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
    def attributes(self) -> Attributes:
        """CF attributes."""
        return {"long_name": self.long_name, "units": self.units}


@dataclass(frozen=True)
class Flags(Variable):
    """A variable with one bit per limit, and without units."""

    units: str = ""
    dtype: np.dtype[np.generic] = FLAGS
    fill_value: float = int(Limit.INCOMPATIBLE)

    @property
    def attributes(self) -> Attributes:
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


def make_percentile(time: str, percent: int) -> Variable:
    """Make the variable of a percentile of a time."""
    of = _name_time(time)
    return Variable(f"median of {of}" if percent == 50 else f"{percent}th percentile of {of}", "s")


def make_elasticity(target: str, parameter: str) -> Variable:
    """Make the variable of the elasticity of a time or of memory in a parameter."""
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
    **{name: make_percentile(*of) for name, of in INTERVALS.items()},
    **{name: make_elasticity(*of) for name, of in ELASTICITIES.items()},
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
