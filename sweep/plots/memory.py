"""Memory of the fullest PE by part, against the capacity of a PE."""

from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
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
from paradl.sweep.plots import slices
from paradl.sweep.plots.bars import MOST_BARS, Bars
from paradl.sweep.plots.looks import MEMORY_LOOKS

if TYPE_CHECKING:
    import xarray as xr

MOST_LAYOUTS = 12  # bars of rows of parameters, whose names take two lines


def describe_memory(source: Source, selection: Selection | None = None) -> Bars:
    """Compute the bars of a slice along its one axis with several values, or of strategies.

    What only lacks memory has a bar, whose text is bold. Many values are thinned out; of many
    layouts the fastest have a bar. InputError: another axis has several values.
    NothingFeasibleError: no bar, however large the memory.
    """
    cells = slices.open_slice(source, selection)
    wide = [str(dim) for dim in cells.dims if cells.sizes[dim] > 1]
    by = wide[0] if len(wide) == 1 else "strategy" if "strategy" in wide else "pe"
    cells, grid = slices.read_slice(cells, (by,)), Paradl(cells).grid
    limit = cells["limit"].values.reshape(-1)
    exists = (limit & np.uint16(FORBIDS & ~Limit.MEMORY)) == 0
    kept, note = _choose_positions(cells, by, exists)
    slices.expect_any(kept, slices.name_reasons(limit))

    def name_bar(at: int) -> str:
        cell = cells.isel({by: [at]})
        if by in LABELS:
            return str(cell[by].item())
        return slices.write_choice(grid, slices.read_row(grid, cell), [by])

    names = [name_bar(at) for at in kept]
    notes = [note] if note else []
    # Of an axis with too many values for bars, reasons would be too many as well.
    if not note and not exists.all():
        others = np.flatnonzero(~exists).tolist()
        forbidden = {name_bar(at): slices.name_reasons(limit[at]) for at in others}
        notes.append(f"not drawn: {slices.list_by_cause(forbidden)}")
    if beyond := [*compress(names, slices.find_beyond(limit[kept]))]:
        notes.append(f"{slices.BEYOND}: {', '.join(beyond)}")
    measured = [_measure_cell(grid, cells.isel({by: [at]})) for at in kept]
    parts = {
        name: np.array([sizes.get(name, 0.0) for sizes, _ in measured])
        for name in MEMORY_LOOKS
        if any(name in sizes for sizes, _ in measured)
    }
    return Bars(
        f"memory of the fullest PE: {slices.write_title(cells, shown=(by,))}",
        names,
        parts,
        MEMORY_LOOKS,
        ("memory per PE", "B"),
        [format_quantity(sum(sizes.values()), "B", digits=3) for sizes, _ in measured],
        notes,
        [bar for bar, at in enumerate(kept) if int(limit[at]) & Limit.MEMORY],
        [capacity for _, capacity in measured],
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


def _measure_cell(grid: Grid, cell: "xr.Dataset") -> tuple[dict[str, float], float]:
    """Measure a cell's memory by part [B], and the capacity of its PE [B]."""
    row = slices.read_row(grid, cell)
    index, axes = locate_row(grid, row), {axis: row[axis] for axis in grid.axes}
    keep_programs()
    return measure_row_parts(grid, row), look_up_capacity(grid, index, axes)
