"""Points of a report's curves: the cells at each PE count, and the fastest choice among them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paradl.grids.grid import LABELS, Grid
from paradl.kernels.names.arrays import Floats
from paradl.sweep.answers.mapping import Row
from paradl.sweep.answers.objectives import HOUR
from paradl.sweep.cells.reader import CHOSEN
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.space import thin_axis
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.cube.variables import find_allowed, name_limits
from paradl.sweep.plots.slices import take_fastest
from paradl.sweep.questions.pareto import find_knee
from paradl.sweep.report.narrow import read_curves
from paradl.sweep.text.names import ROWS_OF_LAYOUTS, name_cell, write_reasons

if TYPE_CHECKING:
    import xarray as xr

    from paradl.sweep.cells.reader import Reader

# A page of 5 MB has room for some 40,000 points: these numbers of values keep a cube of ten
# strategies and 24 places below it.
MOST_COUNTS = 24  # PE counts of a curve
MOST_VALUES = 6  # of a batch, or of another axis along which a strategy may choose
MOST_POINTS = 40_000

# The choice of the fastest values along these axes.
BEST = "best"


def list_points(
    reader: "Reader",
    selection: Selection,
    max_global_batch: int | None,
    places: list[str],
    choices: list[str],
    notes: list[str],
    winners: Sequence[Row] = (),
) -> list[Row]:
    """List the cells of curves: of every choice, and of the fastest one at each PE count.

    winners: rows whose PE counts and choices stay where an axis is thinned.
    """
    if "comp_time" not in reader.held:
        notes.append("no curves: this store keeps the answers of a search, not its cells")
        return []
    values = reader.list_values(selection)
    most = {"pe": MOST_COUNTS} | dict.fromkeys(choices, MOST_VALUES)
    shown = {
        name: np.union1d(thin_axis(values[name], count), [row[name] for row in winners])
        for name, count in most.items()
    }
    for name, kept in shown.items():
        if len(kept) < len(values[name]):
            notes.append(f"curves show {len(kept)} of {len(values[name]):,} values of {name}")
    # The best choice is that of all values, so that curves agree with the ranking.
    chosen = {**selection, "pe": [float(count) for count in shown.pop("pe")]}
    cells = read_curves(reader, chosen, max_global_batch)
    if ROWS_OF_LAYOUTS in cells.dims:
        cells = take_fastest(cells, ROWS_OF_LAYOUTS)
        notes.append("curves show the best layout of each place; choose with --sel tensor=8")
    points = list(_make_points(reader.grid, cells, ["strategy", *places, "pe"], shown))
    if len(points) > MOST_POINTS:
        points = [point for point in points if point["choice"] == BEST]
        notes.append("curves show the best choice at each PE count, and no others")
    _mark_fronts(points, places)
    return points


def _make_points(
    grid: Grid, cells: "xr.Dataset", outer: list[str], shown: Mapping[str, Floats]
) -> Iterator[Row]:
    """Make a row of each allowed cell with values to be shown, and one of each best choice.

    Where no choice is allowed, the row of the best one has the reasons.
    """
    dims = (*outer, *shown)
    cells = cells.assign(time=Paradl(cells).epoch_time).transpose(*dims, ...)
    labels = {
        dim: [str(value) if dim in LABELS else float(value) for value in cells[dim].values]
        for dim in dims
    }
    time, limit = cells["time"].values.astype(float), cells["limit"].values
    # What names a configuration, beside its place: the group of `best`, the row of a layout.
    named = {
        name: cells[name].broadcast_like(cells["limit"]).transpose(*dims).values
        for name in (*CHOSEN.values(), ROWS_OF_LAYOUTS)
        if name in cells
    }
    memory = cells["memory"].transpose(*dims).values
    time = np.where(find_allowed(limit) & np.isfinite(time), time, np.inf)
    kept = np.ones(time.shape[len(outer) :], bool)
    for axis, (name, wanted) in enumerate(shown.items()):
        is_wanted = np.isin(cells[name].values, wanted)
        kept &= is_wanted.reshape([-1 if other == axis else 1 for other in range(len(shown))])
    for at in np.ndindex(time.shape[: len(outer)]):
        place: Row = {dim: labels[dim][position] for dim, position in zip(outer, at, strict=True)}
        fastest = np.unravel_index(time[at].argmin(), kept.shape)
        # Without further axes the best choice is the only one.
        others = map(tuple, np.argwhere(kept & np.isfinite(time[at]))) if shown else ()
        for choice in (fastest, *others):
            cell = (*at, *choice)
            values: Row = {
                name: labels[name][position] for name, position in zip(shown, choice, strict=True)
            }
            chosen = {name: float(array[cell]) for name, array in named.items()}
            text = ", ".join(f"{name} {value:g}" for name, value in values.items())
            layout = {name: chosen[name] for name in (ROWS_OF_LAYOUTS,) if name in chosen}
            row = place | values | layout
            yield {
                **row,
                "name": "" if time[cell] == np.inf else name_cell(grid, row, chosen),
                # The same cell comes twice: as the best choice, and under its own name.
                "choice": BEST if choice is fastest else text,
                **_measure(float(time[cell]), float(memory[cell]), place["pe"], int(limit[cell])),
            }


def _measure(time: float, memory: float, pe: float, limit: int) -> Row:
    """Time [s], memory [B] and PE-hours of a cell; None, and the reasons, where it is forbidden."""
    if not np.isfinite(time):
        reason = write_reasons(name_limits(limit))
        return {"time": None, "memory": None, "pe_hours": None, "reason": reason}
    return {"time": time, "memory": memory, "pe_hours": time * pe / HOUR, "reason": ""}


def _mark_fronts(points: list[Row], places: list[str]) -> None:
    """Mark the points of each place that no other beats in both time and PE-hours, and the knee."""
    fronts: dict[tuple[Any, ...], list[Row]] = {}
    feasible = [point for point in points if point["choice"] == BEST and point["time"]]
    # The fastest come first, so that a point is in the front if it is cheaper than all before it.
    for point in sorted(feasible, key=lambda point: (point["time"], point["pe_hours"])):
        front = fronts.setdefault(tuple(point[name] for name in places), [])
        if not front or point["pe_hours"] < front[-1]["pe_hours"]:
            front.append(point)
    for front in fronts.values():
        for point in front:
            point["front"] = "front"
        times, hours = ([point[name] for point in front] for name in ("time", "pe_hours"))
        front[find_knee(times, hours)]["front"] = "knee"
