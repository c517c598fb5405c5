"""Best: the strategies ranked for a slice of the cube, and what forbids the losers."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from kernels import FORBIDS, Limit
from sweep.questions.slices import Slice, select, slices

Row = dict[str, Any]

PLACE = ("model", "dataset", "system")


def best(cube: xr.Dataset, selection: Mapping[str, object] | None = None) -> pd.DataFrame:
    """A row for each strategy in each (model, dataset, system) of the slice, the fastest first.

    Each strategy with its fastest allowed cell of the slice: pe, batch and any other axis,
    epoch_time, comp_time, comm_time [s per epoch], memory [bytes a PE]. A strategy that is nowhere
    allowed has no rank, and `limit` lists why, the most frequent reason first.
    """
    rows = [_row(each) for each in slices(select(cube, selection or {}))]
    ranked = [row for _, group in groupby(rows, itemgetter(*PLACE)) for row in _ranked(group)]
    return pd.DataFrame(ranked, dtype=object)  # whole numbers stay whole beside None


def _ranked(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of one place, the fastest first."""
    in_order = sorted(rows, key=lambda row: row["epoch_time"] if row["feasible"] else np.inf)
    for rank, row in enumerate(in_order, 1):
        yield {"rank": rank if row["feasible"] else None} | row


def _row(one: Slice) -> Row:
    times = one.allowed_time
    feasible = bool(np.isfinite(times).any())
    pe, other = np.unravel_index(int(times.argmin()), times.shape)
    found = {
        "pe": int(one.pe[pe]),
        **{dim: values[other].item() for dim, values in one.axes.items()},
        "epoch_time": float(times[pe, other]),
        "comp_time": float(one.comp_time[pe, other]),
        "comm_time": float(one.comm_time[pe, other]),
        "memory": float(one.memory[pe, other]),
    }
    return {
        **one.labels,
        **(found if feasible else dict.fromkeys(found)),
        "feasible": feasible,
        "limit": [] if feasible else list(_reasons(one)),
    }


def _reasons(one: Slice) -> Iterator[str]:
    """Names of what forbids the cells, the most frequent first."""
    counts = {each: int(((one.limit & int(each)) != 0).sum()) for each in Limit if each & FORBIDS}
    for each, count in sorted(counts.items(), key=lambda item: -item[1]):
        if count and each.name:
            yield each.name.lower()
