"""Pareto: the configurations that no other one beats in two quantities, such as time and memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from paradl.grids.reading.errors import InputError
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.objectives import (
    HOUR,
    Price,
    check_price,
    look_up_prices,
    read_choice,
)
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import ParetoRow
from paradl.sweep.cells.parts import Part
from paradl.sweep.cells.reader import Reader
from paradl.sweep.cells.selection import Selection, join_selection, locate_row
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.cells.space import list_given
from paradl.sweep.configurations.degrees import write_layouts
from paradl.sweep.configurations.fitting import find_memory_chance
from paradl.sweep.cube.dimensions import expect_laws
from paradl.sweep.cube.variables import Arrays

Against = Literal["pe-hours", "cost", "memory", "pe"]
FrontGoal = Literal["epoch_time", "train_time", "pe_hours"]

# A front has one model and data set, and one value of each machine parameter: configurations with
# others are not alternatives.
PLACE = ("model", "dataset")


def list_front(
    cube: Source,
    selection: Selection | None = None,
    *,
    against: Against = "pe-hours",
    objective: FrontGoal = "epoch_time",
    price: Price = None,
    layouts: bool = False,
    **axes: object,
) -> list[ParetoRow]:
    """Non-dominated cells of each model and data set, the fastest first.

    No other feasible cell of the front has less of the objective ([s], or PE-hours of an epoch) and
    no more of what it is traded `against`: PE-hours, cost, memory [B per PE] or PEs. PE-hours stand
    for samples a second of a PE: the fewer of one, the more of the other. Of equal cells the first
    is listed. Each value of a machine parameter that is an axis has its own front. price: of a
    PE-hour, for all systems or by name. layouts: name those of a strategy that leaves them open;
    against memory, look at all of a cell that no other beats in time and memory.

    InputError: an unknown name, a missing price, a cube without its cells, layouts of transformers
    beside other strategies.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> front = paradl.pareto(ds)
    >>> [*zip(front["strategy"], front["pe"], front["pe_hours"].astype(float).round(2))]
    [('data', 64, 1.43), ('data', 8, 1.26), ('serial', 1, 0.37)]
    """
    selection = join_selection(selection, axes)
    objective = read_choice(objective, get_args(FrontGoal), "objective", "objective")
    against = read_choice(against, get_args(Against), "quantity", "against")
    _check(against, objective, price)
    reader, chosen = open_source(cube), selection or {}
    space = open_space(reader, chosen)
    space.expect_one_kind()
    if layouts:
        from paradl.sweep.questions.best.layouts import find_best_layouts  # late: imports JAX

        # But for memory, all in a cell follows from the time: without fronts Llama 3 70B on 64 to
        # 1,024 PEs takes 2.0 instead of 4.4 s of CPU (2026-11).
        found = find_best_layouts(space, None, fronts=against == "memory")
        reader = open_source(found.grid)
        chosen = {name: values for name, values in chosen.items() if name != "strategy"}
        space = open_space(reader, chosen)
    if objective == "train_time":
        expect_laws(reader.grid, "objective")
    given = list_given(reader.grid, reader.coordinates)
    # A running front of each place, so that memory grows with the fronts and not with the cells.
    fronts: dict[tuple[Any, ...], Arrays] = {}
    for part, times in _read_times(reader, chosen, objective, against):
        costs = _count_costs(part, times, against, price)
        if objective == "pe_hours":
            times = _count_costs(part, times, "pe-hours", None)
        dims = (*PLACE, *given)
        for positions in np.ndindex(*(len(part.coordinates[dim]) for dim in dims)):
            place = dict(zip(dims, positions, strict=True))
            key = tuple(part.coordinates[dim][at] for dim, at in place.items())
            cells = _take_cells(part, place, times, costs, fronts.get(key))
            fronts[key] = merge_fronts(fronts.get(key), cells)
    # PE counts are a coordinate already.
    columns = (*reader.coordinates, "time", *(["cost"] if against != "pe" else []))
    named = {"time": objective, "cost": against.replace("-", "_")}
    heads = [named.get(name, name) for name in columns]
    rows = [
        cast(ParetoRow, dict(zip(heads, row, strict=True)))
        for front in fronts.values()
        for row in zip(*(front[name].tolist() for name in columns), strict=True)
    ]
    sizes = (size for front in fronts.values() for size in front["memory"].tolist())
    for row, size in zip(rows, sizes, strict=True):
        row["fits"] = find_memory_chance(space.grid, locate_row(space.grid, row), row, size)
    return write_layouts(space.grid, complete_rows(space, rows))


pareto = tabulate("pareto", list_front)


def _read_times(
    reader: Reader, chosen: Selection, objective: str, against: str
) -> Iterator[tuple[Part, NDArray[Any]]]:
    """Yield the parts of a slice, with the time to the target or per epoch of their cells [s]."""
    trains = objective == "train_time"
    if trains and "train_time" not in reader.held:
        for part in reader.read_strategies(chosen, None, lambda model, dataset: True):
            yield part, part.epoch_time * part.arrays["epochs"]
        return
    names = ["comp_time", "comm_time", "limit"]
    names += ["memory"] if against == "memory" or "memory" in reader.held else []
    names += ["train_time"] if trains else []
    for part in reader.read_parts(names, reader.locate(chosen)):
        yield part, part.arrays["train_time"] if trains else part.epoch_time


def merge_fronts(front: Arrays | None, cells: Arrays) -> Arrays:
    """Non-dominated cells of both, as columns with ascending `time` and descending `cost`."""
    both = (
        cells
        if front is None
        else {name: np.concatenate([front[name], cells[name]]) for name in cells}
    )
    # lexsort is stable, so the first of equal cells is kept.
    order = np.lexsort((both["cost"], both["time"]))
    costs = both["cost"][order]
    least_before = np.concatenate([[np.inf], np.minimum.accumulate(costs)[:-1]])
    kept = order[costs < least_before]
    return {name: values[kept] for name, values in both.items()}


def find_knee(times: Sequence[float], costs: Sequence[float]) -> int:
    """Position of a front's knee: farthest below the line between its ends, in logarithms."""
    # In logarithms, so that units do not matter.
    x, y = np.log(times), np.log(costs)
    below = (y[0] - y) * (x[-1] - x[0]) - (y[0] - y[-1]) * (x - x[0])
    return int(below.argmax())


def _take_cells(
    part: Part,
    place: Mapping[str, int],
    times: NDArray[Any],
    costs: NDArray[Any],
    front: Arrays | None,
) -> Arrays:
    """Feasible cells of a place that no cell of its front dominates."""
    index = tuple(
        slice(place[dim], place[dim] + 1) if dim in place else slice(None)
        for dim in part.coordinates
    )
    time, cost = times[index].reshape(-1), costs[index].reshape(-1)
    at = np.flatnonzero(part.feasible[index].reshape(-1) & ~np.isnan(time) & ~np.isnan(cost))
    time, cost = time[at].astype(float), cost[at].astype(float)
    if front is not None and len(front["time"]):
        # Compare with the cheapest cell of the front that is no slower; position 0: there is none.
        no_slower = np.searchsorted(front["time"], time, side="right")
        cheapest = np.concatenate([[np.inf], front["cost"]])[no_slower]
        open_to = cost < cheapest
        at, time, cost = at[open_to], time[open_to], cost[open_to]
    kept = merge_fronts(None, {"at": at, "time": time, "cost": cost})
    positions = np.unravel_index(kept["at"], times[index].shape)
    labelled = zip(part.coordinates.items(), index, positions, strict=True)
    values = {dim: known[where][n] for (dim, known), where, n in labelled}
    sizes = part.arrays.get("memory", np.broadcast_to(np.nan, times.shape))[index]
    return {**values, "memory": sizes[positions], "time": kept["time"], "cost": kept["cost"]}


def _count_costs(part: Part, time: NDArray[Any], against: Against, price: Price) -> NDArray[Any]:
    """Cost of cells: PE-hours, money, bytes per PE, or PEs."""
    if against == "memory":
        return part.arrays["memory"]
    if against == "pe":
        return np.broadcast_to(part.along("pe"), time.shape)
    hours: NDArray[Any] = time.astype(float) * part.along("pe") / HOUR
    if against == "pe-hours" or price is None:
        return hours
    return hours * look_up_prices(part.along("system"), price)


def _check(against: str, objective: str, price: Price) -> None:
    if (objective, against) == ("pe_hours", "pe-hours"):
        raise InputError(
            "PE-hours are the objective", where="against", advice="choose cost, memory or pe"
        )
    if against != "cost" and price is not None:
        raise InputError("belongs to against='cost'", where="price", advice="leave it out")
    check_price(price, is_needed=against == "cost")
