"""Points of a report's curves: the cells at each PE count, and the fastest choice among them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from paradl.grids.entries.layout_words import LAYOUT
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
from paradl.sweep.questions.pareto import find_knee, merge_fronts
from paradl.sweep.text.names import name_cell, write_reasons

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
    cells = reader.read_cells(chosen, max_global_batch).load()
    if LAYOUT in cells.dims:
        cells = take_fastest(cells, LAYOUT)
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
    """Make a row of each best choice, and one of each allowed cell with values to be shown.

    Where no choice is allowed, the row of the best one has the reasons.
    """
    dims = [*outer, *shown]
    # What names a configuration, beside its place: the group of `best`, the row of a layout.
    named = [name for name in (*CHOSEN.values(), LAYOUT) if name in cells]
    cells = cells.assign(time=Paradl(cells).epoch_time)[["time", "memory", "limit", *named]]
    table = cells.to_dataframe(dim_order=dims).reset_index()
    numbers = [name for name in (*dims, "time", "memory", *named) if name not in LABELS]
    table[numbers] = table[numbers].astype(float)
    allowed = find_allowed(table["limit"].to_numpy()) & np.isfinite(table["time"])
    table["time"] = table["time"].where(allowed, np.inf)
    best = table.loc[table.groupby(outer, sort=False)["time"].idxmin()]
    # Without further axes the best choice is the only one.
    kept = allowed & bool(shown)
    for name, wanted in shown.items():
        kept = kept & table[name].isin(wanted)
    # The same cell comes twice: as the best choice, and under its own name.
    for source, is_best in ((best, True), (table[kept], False)):
        for cell in source.to_dict("records"):
            row = {name: cell[name] for name in (*dims, *named) if name not in CHOSEN.values()}
            text = ", ".join(f"{name} {cell[name]:g}" for name in shown)
            row["choice"] = BEST if is_best else text
            if np.isfinite(cell["time"]):
                chosen = {name: cell[name] for name in named}
                row |= {"name": name_cell(grid, row, chosen), "reason": ""}
                row |= {"time": cell["time"], "memory": cell["memory"]}
                row["pe_hours"] = cell["time"] * cell["pe"] / HOUR
            else:
                row |= {"name": "", "reason": write_reasons(name_limits(cell["limit"]))}
                row |= dict.fromkeys(("time", "memory", "pe_hours"))
            yield row


def _mark_fronts(points: list[Row], places: list[str]) -> None:
    """Mark the points of each place that no other beats in both time and PE-hours, and the knee."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for point in points:
        if point["choice"] == BEST and point["time"]:
            groups.setdefault(tuple(point[name] for name in places), []).append(point)
    for mine in groups.values():
        times, hours = (np.array([row[name] for row in mine]) for name in ("time", "pe_hours"))
        front = merge_fronts(None, {"time": times, "cost": hours, "at": np.arange(len(mine))})
        for at in front["at"]:
            mine[at]["front"] = "front"
        knee = front["at"][find_knee(front["time"].tolist(), front["cost"].tolist())]
        mine[knee]["front"] = "knee"
