"""Best: the strategies ranked for a slice of the cube, and what forbids the losers."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from kernels import FORBIDS, Limit
from sweep.questions.frame import frame
from sweep.questions.summary import Source, summary

Row = dict[str, Any]

PLACE = ["model", "dataset", "system"]


def best(cube: Source, selection: Mapping[str, object] | None = None) -> pd.DataFrame:
    """A row for each strategy in each (model, dataset, system) of the slice, the fastest first.

    `cube` is a Dataset or the place of a store. Each strategy with its fastest allowed cell of the
    slice: pe, batch and any other axis, epoch_time, comp_time, comm_time [s per epoch], memory
    [bytes a PE]. A strategy that is nowhere allowed has no rank, and `limit` lists why, the most
    frequent reason first.
    """
    found, axes = frame(summary(cube, selection))
    others = axes[len(PLACE) + 1 :]
    rows: list[Row] = []
    for _, place in found.groupby(PLACE, sort=False):
        strategies = place.groupby("strategy", sort=False)
        rows += _ranked([_row(lines, others) for _, lines in strategies])
    return pd.DataFrame(rows, dtype=object)  # whole numbers stay whole beside None


def _ranked(rows: list[Row]) -> Iterator[Row]:
    """The rows of one place, the fastest first."""
    in_order = sorted(rows, key=lambda row: row["epoch_time"] or float("inf"))
    for rank, row in enumerate(in_order, 1):
        yield {"rank": rank if row["feasible"] else None} | row


def _row(lines: pd.DataFrame, others: list[str]) -> Row:
    """The fastest of one strategy's lines of PE counts."""
    feasible = bool(lines["fastest_time"].notna().any())
    chosen = lines.iloc[int(lines["fastest_time"].argmin()) if feasible else 0]
    found = {
        "pe": int(chosen["fastest_pe"]),
        **{axis: chosen[axis] for axis in others},
        "epoch_time": float(chosen["fastest_time"]),
        "comp_time": float(chosen["fastest_comp_time"]),
        "comm_time": float(chosen["fastest_time"] - chosen["fastest_comp_time"]),
        "memory": float(chosen["fastest_memory"]),
    }
    return {
        **{label: chosen[label] for label in (*PLACE, "strategy")},
        **(found if feasible else dict.fromkeys(found)),
        "feasible": feasible,
        "limit": [] if feasible else _reasons(lines),
    }


def _reasons(lines: pd.DataFrame) -> list[str]:
    """Names of what forbids the cells, the most frequent first."""
    counts = {str(each.name): int(lines[str(each.name)].sum()) for each in Limit if each & FORBIDS}
    frequent = sorted(counts.items(), key=lambda item: -item[1])
    return [name.lower() for name, count in frequent if count]
