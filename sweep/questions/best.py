"""Best: the strategies ranked for a slice of the cube, and what forbids the losers."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import xarray as xr

from kernels import FORBIDS, Limit
from sweep.questions.slices import Slice, select, slices

Row = dict[str, object]


def best(cube: xr.Dataset, selection: Mapping[str, object] | None = None) -> pd.DataFrame:
    """A row for each strategy in each (model, dataset, system) of the slice, the fastest first.

    Each strategy with its fastest allowed cell of the slice: pe, batch and any other axis,
    epoch_time, comp_time, comm_time [s per epoch], memory [bytes a PE]. A strategy that is nowhere
    allowed has no rank, and `limit` says why, the most frequent reason first.
    """
    rows = [_row(each) for each in slices(select(cube, selection or {}))]
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame(rows)
    keys = ["model", "dataset", "system"]
    table = table.sort_values([*keys, "epoch_time"], na_position="last", kind="stable")
    rank = table.groupby(keys, sort=False)["epoch_time"].rank(method="first")
    table.insert(0, "rank", rank)
    return table.astype(object).where(table.notna(), None).reset_index(drop=True)


def _row(one: Slice) -> Row:
    times = one.allowed_time
    if not np.isfinite(times).any():
        return one.labels | {"feasible": False, "limit": ", ".join(_reasons(one))}
    pe, other = np.unravel_index(int(times.argmin()), times.shape)
    return {
        **one.labels,
        "pe": int(one.pe[pe]),
        **{dim: values[other].item() for dim, values in one.axes.items()},
        "epoch_time": float(times[pe, other]),
        "comp_time": float(one.comp_time[pe, other]),
        "comm_time": float(one.comm_time[pe, other]),
        "memory": float(one.memory[pe, other]),
        "feasible": True,
        "limit": "",
    }


def _reasons(one: Slice) -> Iterator[str]:
    """Names of what forbids the cells, the most frequent first."""
    counts = {each: int(((one.limit & int(each)) != 0).sum()) for each in Limit if each & FORBIDS}
    for each, count in sorted(counts.items(), key=lambda item: -item[1]):
        if count and each.name:
            yield each.name.lower()
