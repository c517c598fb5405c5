"""Layouts of a report: the columns by which a page selects, names from them, and their space."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.layout_words import write_layout
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import Grid
from paradl.kernels.work.layouts import COLUMNS
from paradl.sweep.cells.selection import locate_row

if TYPE_CHECKING:
    import xarray as xr

Columns = Mapping[str, NDArray[np.int64]]

# The degree of data parallelism is what the others leave of the PEs, so nobody selects by it.
SETTINGS = tuple(name for name in COLUMNS if name != "data")


def read_columns(
    grid: Grid, place: Mapping[str, Any], cells: "xr.Dataset", dims: Sequence[str]
) -> Columns | None:
    """Read the columns of a place's layouts [dims]; None of a strategy without layouts.

    In one go for all cells: to find them one by one takes 2.5 ms each.
    """
    index = locate_row(grid, place)
    if not grid.find_blocks(index):
        return None
    axes = {
        axis: np.atleast_1d(cells[axis].values if axis in dims else place[axis]).astype(float)
        for axis in grid.axes
    }
    case = grid.case(index, axes)
    assert case is not None  # the place has cells
    wide = [axis for axis in grid.axes if axis in dims]
    sizes = [values.size for values in axes.values()]
    order = [wide.index(dim) for dim in dims]
    return {
        name: np.broadcast_to(case.blocks.columns[name], sizes)
        .reshape([axes[axis].size for axis in wide])
        .transpose(order)
        for name in COLUMNS
    }


def describe_layout(columns: Columns, at: tuple[int, ...]) -> dict[str, str]:
    """Return the name of a layout, and the words of its columns."""
    numbers = {name: int(values[at]) for name, values in columns.items()}
    words = {name: str(PARAMETERS[name].write(numbers[name])) for name in SETTINGS}
    return {"name": write_layout(numbers), **words}


def list_settings(points: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """List the words of each column in which the layouts of points differ."""
    layouts = [point for point in points if SETTINGS[0] in point]
    words = {name: {point[name] for point in layouts} for name in SETTINGS}
    return {
        name: sorted(values, key=lambda word: (len(word), word))
        for name, values in words.items()
        if len(values) > 1
    }
