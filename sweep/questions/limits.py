"""Limits: how far each strategy scales, and what stops it.

For every model, dataset, system and strategy (and batch, and any other axis): the largest PE count
that nothing forbids and what forbids the next one, the PE count with the least epoch time, and the
largest PE count that still has a given parallel efficiency.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from grids.errors import InputError
from kernels import FORBIDS, Limit
from sweep.questions.slices import Slice, select, slices
from sweep.variables import names

# At half efficiency, half of the machine is paid for nothing: a customary place to stop.
EFFICIENCY = 0.5
END = "end of the axis"

Row = dict[str, object]


def limits(
    cube: xr.Dataset, efficiency: float = EFFICIENCY, selection: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """One row for each strategy and slice of `cube`.

    Columns: the labels and the other axes, largest_pe, forbidden_by (what forbids the next PE
    count), fastest_pe, fastest_time [s per epoch], efficient_pe; None where no PE count qualifies.
    """
    if not 0 < efficiency <= 1:
        raise InputError(f"efficiency: expected more than 0 and at most 1, got {efficiency!r}")
    part = select(cube, selection or {})
    rows = [row for each in slices(part) for row in _rows(each, efficiency)]
    return pd.DataFrame(rows, dtype=object)  # whole numbers stay whole beside None


def _rows(one: Slice, efficiency: float) -> Iterator[Row]:
    times = one.allowed_time
    efficient = one.serial_time / (times * one.pe[:, None]) >= efficiency
    for other in range(times.shape[1]):
        yield {
            **one.labels,
            **{dim: values[other].item() for dim, values in one.axes.items()},
            **_limit(one.pe, times[:, other], one.limit[:, other], efficient[:, other]),
        }


def _limit(
    pe: NDArray[np.int64],
    times: NDArray[np.float64],
    flags: NDArray[np.uint8],
    efficient: NDArray[np.bool_],
) -> Row:
    """The limits along one line of PE counts."""
    allowed = np.isfinite(times)
    largest = _last(allowed)
    fastest = None if largest is None else int(times.argmin())
    best = _last(efficient & allowed)
    return {
        "largest_pe": None if largest is None else int(pe[largest]),
        "forbidden_by": _forbidding(flags[0 if largest is None else largest + 1 :]),
        "fastest_pe": None if fastest is None else int(pe[fastest]),
        "fastest_time": None if fastest is None else float(times[fastest]),
        "efficient_pe": None if best is None else int(pe[best]),
    }


def _forbidding(later: NDArray[np.uint8]) -> str:
    """What forbids the next PE count. One that the group merely does not divide says nothing."""
    reasons = later & int(FORBIDS & ~Limit.GROUP_DOES_NOT_DIVIDE)
    forbidden = np.flatnonzero(reasons)
    if forbidden.size:
        return ", ".join(names(int(reasons[forbidden[0]])))
    return END


def _last(where: NDArray[np.bool_]) -> int | None:
    found = np.flatnonzero(where)
    return int(found[-1]) if found.size else None
