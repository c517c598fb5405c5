"""The cube's output variables, one table: name, meaning, units, type and fill value.

To add one: a row here, and its name and what it is of an answer in `kernels.stored`. Types, fill
values and CF attributes follow from the row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.outputs import ELASTICITIES, INTERVALS
from kernels.flags import Limit
from kernels.terms import TERMS

Attributes = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

# Computed in double precision and rounded once (`kernels.outputs`), relative 2**-24: 6e-8.
SINGLE: np.dtype[np.generic] = np.dtype("float32")
# A bit for each of the nine limits (`kernels.flags`).
FLAGS: np.dtype[np.generic] = np.dtype("uint16")


@dataclass(frozen=True)
class Variable:
    """How a variable is stored and what its attributes say.

    units: as CF writes them. fill_value: what a block that is not written reads as, which is that
    no such configuration can exist.
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
    """A variable of flags, a bit for each limit; flags have no units."""

    units: str = ""
    dtype: np.dtype[np.generic] = FLAGS
    fill_value: float = int(Limit.INCOMPATIBLE)

    @property
    def attributes(self) -> Attributes:
        """CF attributes: masks and their meanings, in the order of `Limit`."""
        return {
            "long_name": self.long_name,
            "flag_masks": [each.value for each in Limit],
            "flag_meanings": " ".join(name_limits(~0)),
            "comment": "uneven and batch_exceeds_dataset are marks, and forbid nothing",
        }


# What sums are called, which cubes hold no variable of.
NAMED = {"epoch_time": "the time of an epoch", "train_time": "the time to the target"}


def name_limits(flags: int) -> list[str]:
    """The names of the limits in a flag byte."""
    return [each.name.lower() for each in Limit if each & flags and each.name]


def make_percentile(time: str, percent: int) -> Variable:
    """The variable of a percentile of one of an epoch's times."""
    of = NAMED.get(time, time)
    return Variable(f"median of {of}" if percent == 50 else f"{percent}th percentile of {of}", "s")


def make_elasticity(target: str, parameter: str) -> Variable:
    """The variable of the elasticity of a time, or of memory, in a parameter."""
    of = NAMED.get(target, target)
    return Variable(f"elasticity d log y / d log x of {of} in {parameter}", "1")


VARIABLES: dict[str, Variable] = {
    "comp_time": Variable("time computing, per epoch", "s"),
    "comm_time": Variable("time communicating, per epoch", "s"),
    "memory": Variable("memory of the fullest PE", "byte"),
    "limit": Flags("what forbids the configuration"),
    "serial_time": Variable("time of an epoch on one PE", "s"),
    **{term.name: Variable(f"{term.meaning}, per epoch", "s") for term in TERMS.values()},
    **{name: make_percentile(*of) for name, of in INTERVALS.items()},
    **{name: make_elasticity(*of) for name, of in ELASTICITIES.items()},
    "epochs": Variable("epochs to the target", "1"),
    "train_time": Variable("time to the target", "s"),
    "replicas": Variable("replicas of the model (data-parallel groups), p1", "1"),
    "group_size": Variable("PEs in a group, p2", "1"),
    "segment_count": Variable("segments of a pipeline, S", "1"),
}
