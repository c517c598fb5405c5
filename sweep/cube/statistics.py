"""The statistics that a store's summary keeps of each line of PE counts, one table.

Readers find them by the names beside them (`summary/statistic`) and pass over names that they do
not know. So a new statistic breaks no store: its name among `kernels.names.statistics`, what
computes it in `kernels.blocks.summary`, a row here. VERSION
tells what the names mean: it moves only where one comes to mean something else.

An objective is what a line's best PE count is chosen by: `epoch_time`, or `train_time` where a law
of epochs is known (`kernels.names.statistics` lists them); the others belong to
none: they count what is feasible.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernels.names.flags import Limit
from kernels.names.statistics import BEST, COUNTS, STATISTICS
from sweep.cube.variables import SUMS, Arrays

VERSION = 1
# At half efficiency, half of the machine is paid for nothing: a customary place to stop.
EFFICIENCY = 0.5


@dataclass(frozen=True)
class Statistic:
    """A number that a summary keeps of a line of PE counts.

    nothing: what a pair of model and dataset reads as that does not fit. objective: empty where it
    belongs to none.
    """

    dtype: str
    nothing: float
    meaning: str
    objective: str = ""


Table = Mapping[str, Statistic]

# What is kept of the best PE count: the fields of `kernels.blocks.summary.Best`.
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
    """The objectives that statistics of a table belong to."""
    objectives = (statistic.objective for statistic in table.values())
    return list(dict.fromkeys(filter(None, objectives)))


def type_statistics(values: NDArray[np.float64], names: Iterable[str] = STATISTICS) -> Arrays:
    """Arrays by name and of their own types, out of values [statistic, ...] in the order of names.

    Names that are not known are left out; NaN throughout is of a pair that cannot be.
    """
    # A store keeps all statistics as float64, in which whole numbers are exact to 2**53; PE counts
    # end at 2**40 (`grids.entries.parameters`).
    rows = ((name, row) for name, row in zip(names, values, strict=True) if name in TABLE)
    return {
        name: np.where(np.isnan(row), TABLE[name].nothing, row).astype(TABLE[name].dtype)
        for name, row in rows
    }
