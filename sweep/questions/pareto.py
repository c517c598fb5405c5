"""Pareto: the configurations of which none is both faster and cheaper."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grids.reading.errors import InputError, shorten, suggest_name
from kernels.names.statistics import Objective
from sweep.answers.objectives import HOUR, Price, check_price, expect_objective, look_up_prices
from sweep.answers.system_settings import complete_rows
from sweep.cells.parts import Part
from sweep.cells.selection import Selection
from sweep.cells.source import Source, open_source
from sweep.cells.space import list_given, open_space
from sweep.cube.dimensions import expect_laws
from sweep.cube.variables import Arrays

Row = dict[str, Any]
Against = Literal["pe-hours", "cost", "memory"]

# A front is of one model and data set: times of others are no alternatives. Nor are other values
# of a machine's parameters, which nobody chooses.
PLACE = ("model", "dataset")


def pareto(
    cube: Source,
    selection: Selection | None = None,
    *,
    against: Against = "pe-hours",
    objective: Objective = "epoch_time",
    price: Price = None,
) -> list[Row]:
    """The non-dominated cells of each model and data set, the fastest first, as plain data.

    `cube` is a Dataset or the place of a store. Parameters of a machine that are axes, such as a
    bandwidth, are given: each value has a front of its own. A row: the labels and axes of a
    feasible cell, its epoch_time or train_time [s] and its pe_hours, cost or memory [bytes per PE],
    of an epoch or until the target: no other feasible cell of the front has less of one and no more
    of the other. Where cells are equal in both, the first is listed. price: of a PE-hour, for all
    systems or by name. All cells are read, a block at a time.

    InputError: an unknown name, a price that is missing, a cube without its cells.
    """
    _check(against, objective, price)
    reader, chosen = open_source(cube), selection or {}
    if objective == "train_time":
        expect_laws(reader.grid, "objective")
    names = ["comp_time", "comm_time", "limit"]
    names += ["memory"] if against == "memory" else []
    names += ["train_time"] if objective == "train_time" else []
    given = list_given(reader.grid, reader.coordinates)
    fronts: dict[tuple[Any, ...], Arrays] = {}
    for part in reader.read_parts(names, reader.locate(chosen)):
        times = part.epoch_time if objective == "epoch_time" else part.arrays["train_time"]
        costs = _count_costs(part, times, against, price)
        for place in _list_places(part, given):
            key = tuple(part.coordinates[dim][at] for dim, at in place.items())
            cells = _take_cells(part, place, times, costs, fronts.get(key))
            fronts[key] = merge_fronts(fronts.get(key), cells)
    columns = (*reader.coordinates, "time", "cost")
    named = {"time": objective, "cost": against.replace("-", "_")}
    rows = [row for each in fronts.values() for row in _list_rows(each, columns, named)]
    return complete_rows(open_space(reader, chosen), rows)


def merge_fronts(front: Arrays | None, cells: Arrays) -> Arrays:
    """The non-dominated of both, columns with `time` ascending and so `cost` descending."""
    both = (
        cells
        if front is None
        else {name: np.concatenate([front[name], cells[name]]) for name in cells}
    )
    # Stable, so that of equal cells the first stays the first.
    order = np.lexsort((both["cost"], both["time"]))
    costs = both["cost"][order]
    least_before = np.concatenate([[np.inf], np.minimum.accumulate(costs)[:-1]])
    kept = order[costs < least_before]
    return {name: values[kept] for name, values in both.items()}


def _list_places(part: Part, given: list[str]) -> Iterator[dict[str, int]]:
    """The positions of each front of a part, along the dimensions that fronts keep apart."""
    dims = (*PLACE, *given)
    for place in product(*(range(len(part.coordinates[dim])) for dim in dims)):
        yield dict(zip(dims, place, strict=True))


def _take_cells(
    part: Part,
    place: Mapping[str, int],
    times: NDArray[Any],
    costs: NDArray[Any],
    front: Arrays | None,
) -> Arrays:
    """The feasible cells of a place that no cell of its front dominates."""
    index = tuple(
        slice(place[dim], place[dim] + 1) if dim in place else slice(None)
        for dim in part.coordinates
    )
    time, cost = times[index].reshape(-1), costs[index].reshape(-1)
    at = np.flatnonzero(part.feasible[index].reshape(-1) & ~np.isnan(time) & ~np.isnan(cost))
    time, cost = time[at].astype(float), cost[at].astype(float)
    if front is not None and len(front["time"]):
        # The cheapest of the front that is no slower: 0 where all are.
        no_slower = np.searchsorted(front["time"], time, side="right")
        cheapest = np.concatenate([[np.inf], front["cost"]])[no_slower]
        open_to = cost < cheapest
        at, time, cost = at[open_to], time[open_to], cost[open_to]
    kept = merge_fronts(None, {"at": at, "time": time, "cost": cost})
    positions = np.unravel_index(kept["at"], times[index].shape)
    labelled = zip(part.coordinates.items(), index, positions, strict=True)
    values = {dim: known[where][n] for (dim, known), where, n in labelled}
    return {**values, "time": kept["time"], "cost": kept["cost"]}


def _count_costs(part: Part, time: NDArray[Any], against: Against, price: Price) -> NDArray[Any]:
    """The cost of cells: PE-hours, money, or bytes per PE."""
    if against == "memory":
        return part.arrays["memory"]
    hours: NDArray[Any] = time.astype(float) * part.along("pe") / HOUR
    if against == "pe-hours" or price is None:
        return hours
    return hours * look_up_prices(part.along("system"), price)


def _check(against: str, objective: str, price: Price) -> None:
    expect_objective(objective)
    if against not in get_args(Against):
        raise InputError(
            f"unknown {shorten(against)}",
            where="against",
            advice=suggest_name(str(against), get_args(Against)),
        )
    if (against == "cost") != (price is not None):
        raise InputError(
            "expected a price with 'cost', and with nothing else",
            where="price",
            advice="of a PE-hour, such as 1.5",
        )
    check_price(price)


def _list_rows(front: Arrays, columns: tuple[str, ...], named: Mapping[str, str]) -> list[Row]:
    """The rows of a front as plain data."""
    values = [front[name].tolist() for name in columns]
    heads = [named.get(name, name) for name in columns]
    return [dict(zip(heads, row, strict=True)) for row in zip(*values, strict=True)]
