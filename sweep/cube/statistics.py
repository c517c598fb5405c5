"""Statistics that a store's summary keeps of each line of PE counts.

Readers find them by name (`summary/statistic`) and ignore unknown names, so that adding one breaks
no store: add its name to `kernels.names.statistics`, its formula to `kernels.blocks.summary`, and a
row here. VERSION changes only if a name comes to mean something else.

An objective is what a line's best PE count minimises: `epoch_time`, or `train_time` where a law of
epochs is known. Statistics without an objective count what is feasible.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paradl.kernels.names.flags import Limit
from paradl.kernels.names.statistics import BEST, COUNTS, STATISTICS
from paradl.sweep.cube.variables import SUMS, Arrays

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
    # Stored as float64, which is exact for whole numbers to 2**53; PE counts end at 2**40
    # (`grids.entries.parameters`).
    rows = ((name, row) for name, row in zip(names, values, strict=True) if name in TABLE)
    return {
        name: np.where(np.isnan(row), TABLE[name].nothing, row).astype(TABLE[name].dtype)
        for name, row in rows
    }
