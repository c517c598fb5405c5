"""Pick the best allowed cell of each strategy in each place of a slice.

A place is a model, a data set and a machine: a system with one value of each machine parameter that
is an axis. Picks come from a store's summary if it has the objective, else from the cells.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS, Grid
from paradl.kernels.names.flags import FORBIDS, TOO_SLOW, Limit
from paradl.kernels.names.statistics import BEST, COUNT, Objective
from paradl.sweep.answers.objectives import Aim
from paradl.sweep.answers.reasons import rank_limits, rank_reasons
from paradl.sweep.cells.parts import Lines, Part
from paradl.sweep.cells.reader import CHOSEN
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.cells.space import (
    CellAxes,
    Labels,
    list_given,
    name_labels,
    take_cell,
    write_axes,
    write_cell,
)
from paradl.sweep.configurations.degrees import list_layout_rows
from paradl.sweep.cube.variables import Arrays, find_allowed, name_limits

if TYPE_CHECKING:
    from paradl.sweep.boundaries.deadlines import Deadline
    from paradl.sweep.configurations.layout_cells import LayoutCell

# Variables of a cell that a pick needs, if the cube has them.
WEIGHED = ("comp_time", "comm_time", "memory", "epochs", *CHOSEN.values())
PLACE = ("model", "dataset", "system")
# Relative error of a quotient of statistics, which are in single precision.
ROUNDING = 2.0**-22


@dataclass(frozen=True)
class PickedCell:
    """The best cell of a strategy in a place.

    comp_time, comm_time [s per epoch]; epochs: None unless the aim is a time to train; memory [B].
    chosen: the group and segments if the cube has them. Of a layout that a search has found also
    the layout, and the spread of the logarithm of its time.
    """

    axes: CellAxes
    comp_time: float
    comm_time: float
    memory: float
    epochs: float | None = None
    chosen: Mapping[str, int] | None = None
    layout: "LayoutCell | None" = None
    spread: float | None = None

    @property
    def epoch_time(self) -> float:
        """Seconds per epoch."""
        return self.comp_time + self.comm_time


@dataclass(frozen=True)
class Nothing:
    """No cell of a strategy is allowed in a place.

    axes: None but for the parameters that the place has. reasons: the most frequent first.
    """

    axes: Mapping[str, int | float | None]
    reasons: list[str]


Pick = tuple[Labels, PickedCell | Nothing]


def pick_strategies(
    source: Source,
    selection: Selection | None,
    aim: Aim,
    max_global_batch: int | None = None,
    deadline: "Deadline | None" = None,
    most: int = 1,
) -> Iterator[Pick]:
    """Yield the pick of each strategy in each place whose samples fit, in the cube's order.

    deadline: only cells that meet it are picked. most: rows of an axis of layouts that are picked.
    """
    reader, chosen = open_source(source), selection or {}
    if deadline is None and aim.summarised and reader.has_lines(chosen, max_global_batch):
        lines = reader.summarise(chosen, objective=aim.summarised)
        yield from _pick_lines(reader.grid, lines, aim.summarised, most)
        return
    trains = partial(aim.trains, reader.grid)
    for part in reader.read_strategies(chosen, max_global_batch, trains):
        yield from _pick_cells(reader.grid, part, aim, deadline, most)


def _list_best(
    weights: NDArray[Any], most: int, along: Sequence[int] = ()
) -> list[tuple[int, ...]]:
    """List where weights are least, at most so often; along: axes whose rows count once each."""
    if most == 1:
        order = np.array([np.nanargmin(weights)])
    else:
        order = np.argsort(weights, axis=None, kind="stable")[: (~np.isnan(weights)).sum()]
    if along:
        of_rows = np.stack(np.unravel_index(order, weights.shape))[[*along]]
        order = order[np.sort(np.unique(of_rows, axis=1, return_index=True)[1])]
    return [tuple(map(int, np.unravel_index(at, weights.shape))) for at in order[:most]]


def _pick_lines(grid: Grid, lines: Lines, objective: Objective, most: int) -> Iterator[Pick]:
    """Yield the picks from a summary: the best of the lines of PE counts."""
    names, trains = BEST[objective], objective == "train_time"
    others = {dim: values for dim, values in lines.coordinates.items() if dim not in LABELS}
    given, rows = list_given(grid, others), list_layout_rows(grid)
    along = [n for n, axis in enumerate(others) if axis in rows]
    for at in np.ndindex(*(len(lines.coordinates[dim]) for dim in LABELS)):
        if (lines.arrays["forbidden_by"][at] == Limit.INCOMPATIBLE).all():  # samples do not fit
            continue
        labels = name_labels(
            *(lines.coordinates[dim][n] for dim, n in zip(LABELS, at, strict=True))
        )
        for place in _list_places(others, given):
            values = {axis: others[axis][part] for axis, part in zip(others, place, strict=True)}
            line = {name: array[at][place] for name, array in lines.arrays.items()}
            times = line[names["time"]]
            if np.isnan(times).all():
                # None: the store is older than the flag.
                counts = {name: line.get(f"{COUNT}{name}") for name in name_limits(FORBIDS)}
                known = {name: int(n.sum()) for name, n in counts.items() if n is not None}
                fixed = {axis: values[axis][0].item() for axis in given}
                yield labels, Nothing(dict.fromkeys(("pe", *others)) | fixed, rank_reasons(known))
                continue
            for fastest in _list_best(times, most if along else 1, along):
                best = {field: float(line[name][fastest]) for field, name in names.items()}
                # The summary keeps the time to the target, and not that of an epoch.
                epoch = best["time"] / best["epochs"] if trains else best["time"]
                communication = epoch - best["comp_time"]
                if trains and communication < ROUNDING * epoch:
                    communication = 0.0  # one PE has none; a rounding error may be negative
                cell = {"pe": best["pe"], **take_cell(values, fastest)}
                epochs = best["epochs"] if trains else None
                compute, memory = best["comp_time"], best["memory"]
                yield labels, PickedCell(write_cell(cell), compute, communication, memory, epochs)


def _pick_cells(
    grid: Grid, part: Part, aim: Aim, deadline: "Deadline | None", most: int
) -> Iterator[Pick]:
    """Yield the picks of one strategy."""
    coordinates = {dim: values for dim, values in part.coordinates.items() if dim not in LABELS}
    labels = name_labels(*(str(part.coordinates[dim][0]) for dim in LABELS))
    cells = {name: values[(0,) * len(LABELS)] for name, values in part.arrays.items()}
    limit = cells["limit"]
    if (limit == Limit.INCOMPATIBLE).all():  # the samples do not fit
        return
    trains = aim.trains(grid, labels["model"], labels["dataset"])
    names = (name for name in WEIGHED if name in cells and (trains or name != "epochs"))
    arrays = {name: cells[name].astype(float) for name in names}
    allowed = np.where(find_allowed(limit), _weigh(arrays, coordinates["pe"], aim), np.nan)
    fixed, rows = list_given(grid, coordinates), list_layout_rows(grid)
    for cells_of_place in _list_places(coordinates, fixed):
        places = zip(coordinates.items(), cells_of_place, strict=True)
        values = {axis: along[at] for (axis, along), at in places}
        weights = allowed[cells_of_place]
        is_allowed, taken = not np.isnan(weights).all(), set[tuple[int, ...]]()
        along = [n for n, axis in enumerate(values) if axis in rows]
        wanted = most if along else 1
        best = _list_best(weights, wanted, along) if is_allowed else []
        if deadline and is_allowed:  # the best may be too slow
            best = _list_best(weights, weights.size)
        for at in best:
            of_row = tuple(at[n] for n in along)
            if of_row in taken or len(taken) == wanted:
                continue
            cell = {name: float(array[cells_of_place][at]) for name, array in arrays.items()}
            picked = _describe_cell(write_cell(take_cell(values, at)), cell)
            row = {**labels, **picked.axes}
            if deadline is None or deadline.is_met(grid, row, _add_times(cell)):
                taken.add(of_row)
                yield labels, picked
        if not taken:
            reasons = [TOO_SLOW] if is_allowed else rank_limits(limit[cells_of_place])
            given = write_axes({axis: values[axis][0] for axis in fixed})
            yield labels, Nothing(dict.fromkeys(coordinates) | given, reasons)


def _describe_cell(axes: CellAxes, cell: Mapping[str, float]) -> PickedCell:
    known = all(name in cell for name in CHOSEN.values())
    return PickedCell(
        axes=axes,
        comp_time=cell["comp_time"],
        comm_time=cell["comm_time"],
        memory=cell["memory"],
        epochs=cell.get("epochs"),
        chosen={of: int(cell[name]) for of, name in CHOSEN.items()} if known else None,
    )


def _list_places(axes: Arrays, given: list[str]) -> Iterator[tuple[slice, ...]]:
    """Yield the slices of cells for each combination of values of the given axes."""
    sizes = [values.size if axis in given else 1 for axis, values in axes.items()]
    for at in np.ndindex(*sizes):
        yield tuple(
            slice(n, n + 1) if axis in given else slice(None)
            for axis, n in zip(axes, at, strict=True)
        )


def _weigh(arrays: Mapping[str, NDArray[Any]], pe: NDArray[Any], aim: Aim) -> NDArray[Any]:
    """Quantity to minimise of each cell; a price is left out, since it is one per system."""
    if aim.goal == "memory":
        return arrays["memory"]
    time = _add_times(arrays)
    counts = pe.reshape(-1, *[1] * (time.ndim - 1)) if aim.counts_pes else 1.0
    return np.asarray(time * counts)


def _add_times(cells: Mapping[str, Any]) -> Any:
    """Time per epoch [s], or to the target where epochs are known."""
    return (cells["comp_time"] + cells["comm_time"]) * cells.get("epochs", 1.0)
