"""Limits: how far each strategy scales, and what stops it.

For every model, dataset, system and strategy (and batch, and any other axis): the largest PE count
that nothing forbids and what forbids the next one, the PE count with the least epoch time, and the
largest PE count that still has a given parallel efficiency.
"""

from collections.abc import Mapping

import pandas as pd

from grids.errors import InputError
from sweep.questions.frame import frame, whole
from sweep.questions.summary import Source, summary
from sweep.variables import EFFICIENCY, names

END = "end of the axis"


def limits(
    cube: Source, efficiency: float = EFFICIENCY, selection: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """One row for each strategy and slice of `cube`, a Dataset or the place of a store.

    Columns: the labels and the other axes, largest_pe, forbidden_by (what forbids the next PE
    count), fastest_pe, fastest_time [s per epoch], efficient_pe; None where no PE count qualifies.
    """
    if not 0 < efficiency <= 1:
        raise InputError(f"efficiency: expected more than 0 and at most 1, got {efficiency!r}")
    found, axes = frame(summary(cube, selection, efficiency))
    reasons = {flags: _reason(int(flags)) for flags in found["forbidden_by"].unique()}
    times = found["fastest_time"]
    columns = {
        **{axis: found[axis] for axis in axes},
        "largest_pe": whole(found["largest_pe"]),
        "forbidden_by": found["forbidden_by"].map(reasons),
        "fastest_pe": whole(found["fastest_pe"]),
        "fastest_time": times.astype(object).where(times.notna(), None),
        "efficient_pe": whole(found["efficient_pe"]),
    }
    return pd.DataFrame(columns, dtype=object).reset_index(drop=True)


def _reason(flags: int) -> str:
    return ", ".join(names(flags)) or END
