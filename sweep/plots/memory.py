"""Memory of the fullest PE by part, against the capacity of a PE."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.units import format_quantity
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.sweep.cells.selection import Selection, locate_row
from paradl.sweep.cells.source import Source
from paradl.sweep.cells.space import look_up_capacity, thin_axis
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.engine.resources import keep_programs
from paradl.sweep.explanation.kinds import measure_row_parts
from paradl.sweep.plots.figures import (
    MOST_BARS,
    add_legend,
    draw_bars,
    make_keys,
    split_parts,
    write_totals,
)
from paradl.sweep.plots.looks import MEMORY_LOOKS, shorten_names, styled
from paradl.sweep.plots.slices import (
    BEYOND,
    expect_any,
    find_beyond,
    list_by_cause,
    name_reasons,
    open_slice,
    read_row,
    read_slice,
    write_choice,
    write_title,
)

if TYPE_CHECKING:
    import xarray as xr

MOST_LAYOUTS = 12  # bars of rows of parameters, whose names take two lines


@dataclass(frozen=True)
class Bar:
    """Memory of the fullest PE by part, for one value of an axis; capacity: of a PE [B]."""

    name: str
    parts: Mapping[str, float]
    capacity: float
    fits: bool

    @property
    def total(self) -> float:
        """Sum of the parts [B]."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class MemoryBars:
    """Bars of strategies, or of the values of another axis.

    forbidden: names without a bar, with the reason; what only lacks memory has a bar. beyond: bars
    whose global batch is larger than the data set. note: which of many values have a bar.
    """

    title: str
    by: str
    bars: tuple[Bar, ...]
    forbidden: Mapping[str, str] = field(default_factory=dict)
    beyond: tuple[str, ...] = ()
    note: str = ""


def describe_memory(source: Source, selection: Selection | None = None) -> MemoryBars:
    """Compute the bars of a slice along its one axis with several values, or of strategies.

    Many values are thinned out; of many layouts the fastest have a bar. InputError: another axis
    has several values. NothingFeasibleError: no bar, however large the memory.
    """
    cells = open_slice(source, selection)
    wide = [str(dim) for dim in cells.dims if cells.sizes[dim] > 1]
    by = wide[0] if len(wide) == 1 else "strategy" if "strategy" in wide else "pe"
    cells, grid = read_slice(cells, (by,)), Paradl(cells).grid
    limit = cells["limit"].values.reshape(-1)
    # What only lacks memory has a bar, which shows by how much.
    exists = (limit & np.uint16(FORBIDS & ~Limit.MEMORY)) == 0
    kept, note = _choose_positions(cells, by, exists)
    expect_any(kept, name_reasons(limit))
    names = {at: _name_bar(grid, cells.isel({by: [at]}), by) for at in kept}
    return MemoryBars(
        write_title(cells, shown=(by,)),
        by,
        tuple(_make_bar(grid, name, cells.isel({by: [at]})) for at, name in names.items()),
        # Of an axis with too many values for bars, reasons would be too many as well.
        {}
        if note
        else {
            _name_bar(grid, cells.isel({by: [at]}), by): name_reasons(limit[at])
            for at in np.flatnonzero(~exists)
        },
        tuple(name for at, name in names.items() if find_beyond(limit[at])),
        note,
    )


def _choose_positions(
    cells: "xr.Dataset", by: str, exists: NDArray[np.bool_]
) -> tuple[list[int], str]:
    """Choose positions along an axis, and say which they are if they are not all."""
    at = np.flatnonzero(exists)
    if by in Paradl(cells).grid.rows and at.size > MOST_LAYOUTS:
        times = Paradl(cells).epoch_time.values.reshape(-1)[at]
        fastest = at[np.argsort(times, kind="stable")[:MOST_LAYOUTS]]
        return fastest.tolist(), f"the {MOST_LAYOUTS} fastest of {at.size:,} {by}s"
    if by == "strategy" or at.size <= MOST_BARS:
        return at.tolist(), ""
    values = cells[by].values[at].astype(float)
    shown = thin_axis(values, MOST_BARS)
    return at[np.isin(values, shown)].tolist(), f"{shown.size} of {at.size:,} values of {by}"


def _name_bar(grid: Grid, cell: "xr.Dataset", by: str) -> str:
    return str(cell[by].item()) if by in LABELS else write_choice(grid, read_row(grid, cell), [by])


def _make_bar(grid: Grid, name: str, cell: "xr.Dataset") -> Bar:
    row = read_row(grid, cell)
    index, axes = locate_row(grid, row), {axis: row[axis] for axis in grid.axes}
    keep_programs()
    fits = not int(cell["limit"].item()) & Limit.MEMORY
    return Bar(name, measure_row_parts(grid, row), look_up_capacity(grid, index, axes), fits)


@styled
def draw_memory(memory: MemoryBars) -> Figure:
    """Draw bars, the first at the top, with their totals on the right."""
    bars = memory.bars
    parts = {
        name: np.array([bar.parts.get(name, 0.0) for bar in bars])
        for name in MEMORY_LOOKS
        if any(name in bar.parts for bar in bars)
    }
    shown, thin = split_parts(parts)
    title = f"memory of the fullest PE: {memory.title}"
    names = [*shorten_names([bar.name for bar in bars]).values()]
    quantity = ("memory per PE", "B")
    notes = [f"not drawn: {list_by_cause(memory.forbidden)}"] if memory.forbidden else []
    if memory.note:
        notes.append(memory.note)
    if memory.beyond:
        notes.append(f"{BEYOND}: {', '.join(memory.beyond)}")
    figure, axes = draw_bars(
        title, "; ".join([*notes, *thin]), names, shown, MEMORY_LOOKS, quantity
    )
    totals = [format_quantity(bar.total, "B", digits=3) for bar in bars]
    write_totals(axes, totals, [row for row, bar in enumerate(bars) if not bar.fits])
    capacity = _draw_capacities(axes, [bar.capacity for bar in bars])
    add_legend(figure, [*make_keys(shown, MEMORY_LOOKS), capacity])
    return figure


def _draw_capacities(axes: Axes, capacities: Sequence[float]) -> Artist:
    """Draw a line through all bars, or one at each bar if their machines differ."""
    ink, paper = mpl.rcParams["text.color"], mpl.rcParams["axes.facecolor"]
    largest = max(capacities)
    # The line is in the picture even if all bars are short.
    axes.set_xlim(right=max(axes.get_xlim()[1], 1.05 * largest))
    dashes: Any = {"color": ink, "linestyle": (0, (3, 1.5)), "zorder": 3}
    # Below the dashes a line in the colour of the paper sets them off from bars.
    if min(capacities) == largest:
        axes.axvline(largest, color=paper, zorder=3)
        label = f"capacity\n{format_quantity(largest, 'B', digits=3)}"
        return axes.axvline(largest, label=label, **dashes)
    rows = np.array(axes.get_yticks())
    axes.vlines(capacities, rows - 0.45, rows + 0.45, color=paper, zorder=3)
    return axes.vlines(capacities, rows - 0.45, rows + 0.45, label="capacity", **dashes)
