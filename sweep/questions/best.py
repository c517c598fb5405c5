"""Best: the strategies ranked for a slice of the cube, and what forbids the losers."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from grids.grid import Grid
from kernels.flags import FORBIDS
from kernels.statistics import BEST, COUNT, Objective
from sweep.cube.variables import name_limits
from sweep.questions.lines import Columns, split_groups
from sweep.questions.selection import Selection
from sweep.questions.summary_table import (
    Source,
    expect_objective,
    open_source,
    read_machine_grid,
    summarise_slice,
)

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

PLACE = ["model", "dataset", "system"]


def best(
    cube: Source, selection: Selection | None = None, objective: Objective = "epoch_time"
) -> "pd.DataFrame":
    """A row for each strategy in each (model, dataset, system) of the slice, the fastest first.

    `cube` is a Dataset or the place of a store. Each strategy with its fastest allowed cell of the
    slice: pe, batch and any other axis, epoch_time, comp_time, comm_time [s per epoch], memory
    [bytes a PE]; with the objective train_time the cell that is soonest at the target, and epochs
    and train_time [s] besides. A strategy that is nowhere allowed has no rank, and `limit` lists
    why, the most frequent reason first. Of a cube of the machine oracle, the first has
    `faster_than_next`: the probability that it takes less time than the second.
    """
    import pandas as pd

    rows = rank_strategies(cube, selection, objective)
    return pd.DataFrame(rows, dtype=object)  # whole numbers stay, beside None


def rank_strategies(
    cube: Source, selection: Selection | None = None, objective: Objective = "epoch_time"
) -> list[Row]:
    """The rows of `best` as plain data, without pandas, which takes long to import."""
    expect_objective(objective)
    cube = open_source(cube)  # once for both: each opening reads and checks the root again
    lines = summarise_slice(cube, selection, objective=objective)
    others = list(lines.coordinates)[len(PLACE) + 1 :]
    describe = partial(_summarise_strategy, others=others, objective=objective)
    rows: list[Row] = []
    grid = read_machine_grid(cube)
    for place in split_groups(lines.list_columns(), PLACE):
        ranked = list(_rank_rows(map(describe, split_groups(place, ["strategy"])), objective))
        rows += ranked if grid is None else _add_chance(grid, ranked, objective)
    return rows


def _add_chance(grid: Grid, ranked: list[Row], objective: Objective) -> list[Row]:
    """The rows, the first with the probability that it is faster than the second."""
    from sweep.questions.probability import find_chance  # late: JAX comes with it

    rivals = [row for row in ranked[:2] if row["feasible"]]
    first = find_chance(grid, rivals[0], rivals[1], objective) if len(rivals) == 2 else None
    return [row | {"faster_than_next": first if n == 0 else None} for n, row in enumerate(ranked)]


def _rank_rows(rows: Iterable[Row], objective: Objective) -> Iterator[Row]:
    """The rows of one place, the fastest first."""
    # Sorting is stable: strategies that nothing allows stay in the cube's order.
    in_order = sorted(rows, key=lambda row: row[objective] or float("inf"))
    for rank, row in enumerate(in_order, 1):
        yield {"rank": rank if row["feasible"] else None} | row


def _summarise_strategy(lines: Columns, others: list[str], objective: Objective) -> Row:
    """The fastest of one strategy's lines of PE counts."""
    names = BEST[objective]
    times = lines[names["time"]]
    feasible = not np.isnan(times).all()
    # Of nothing but NaN nanargmin raises; a line that cannot be still has the labels.
    fastest = int(np.nanargmin(times)) if feasible else 0
    chosen = {name: values[fastest] for name, values in lines.items()}
    answer = {
        "pe": int(chosen[names["pe"]]),
        **{axis: chosen[axis].item() for axis in others},
        **_list_times({field: float(chosen[name]) for field, name in names.items()}, objective),
        "memory": float(chosen[names["memory"]]),
    }
    return {
        **{label: chosen[label] for label in (*PLACE, "strategy")},
        **(answer if feasible else dict.fromkeys(answer)),
        "feasible": feasible,
        "limit": [] if feasible else _list_reasons(lines),
    }


def _list_times(best: Mapping[str, float], objective: Objective) -> Row:
    """Times of an epoch [s], and to the target where that is the objective."""
    trains = objective == "train_time"
    epoch = best["time"] / best["epochs"] if trains else best["time"]
    times = {
        "epoch_time": epoch,
        "comp_time": best["comp_time"],
        "comm_time": epoch - best["comp_time"],
    }
    return {"epochs": best["epochs"], "train_time": best["time"], **times} if trains else times


def _list_reasons(lines: Columns) -> list[str]:
    """Names of what forbids the cells, the most frequent first."""
    counts = {name: int(lines[f"{COUNT}{name}"].sum()) for name in name_limits(FORBIDS)}
    # Of equal counts the first in the order of `Limit`.
    frequent = sorted(counts.items(), key=lambda item: -item[1])
    return [name for name, count in frequent if count]
