"""Design spaces narrowed to a place, whose cells the kernels compute on the spot."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from paradl.grids.axes import Axis
from paradl.grids.grid import LABELS, Grid
from paradl.grids.rows import Rows
from paradl.sweep.cells.selection import Selection, locate_label
from paradl.sweep.cells.source import GridReader
from paradl.sweep.cube.provenance import check_code

if TYPE_CHECKING:
    import xarray as xr

    from paradl.sweep.cells.reader import Reader

# Blocks of larger cubes hold all values of parameters that a page shows one of: to read a place of
# a billion cells (8 strategies) unpacks 4 GB in 1 s of CPU time, to compute it anew takes 0.05 s.
MOST_CELLS_READ = 2**26


def read_curves(
    reader: "Reader", selection: Selection, max_global_batch: int | None
) -> "xr.Dataset":
    """Read the cells of curves, or compute them if the cube is large and made by this code."""
    size = prod(len(values) for values in reader.coordinates.values())
    # Other code might compute other bits than those that the ranking has read.
    made_here = reader.versions and not check_code(reader.versions)
    if size <= MOST_CELLS_READ or not made_here:
        return reader.read_cells(selection, max_global_batch).load()
    values = reader.list_values(selection)
    grid = narrow_grid(reader.grid, {name: values[name].tolist() for name in selection})
    return GridReader(grid).read_cells({}, max_global_batch)


def narrow_grid(
    grid: Grid,
    selection: Mapping[str, Sequence[Any]],
    parameters: Mapping[str, float] | None = None,
) -> Grid:
    """Narrow a design space to labels and values of its axes, with other fixed parameters.

    Rows are renumbered from 0. InputError: an unknown label.
    """
    positions = {
        dim: [locate_label(grid, dim, str(name)) for name in selection[dim]]
        if dim in selection
        else range(len(grid.labels[dim]))
        for dim in LABELS
    }
    systems = tuple(grid.systems[at] for at in positions["system"])
    names = {system.name for system in systems}
    axes: dict[str, Axis | Rows] = {}
    for name, values in selection.items():
        if name in grid.rows:
            kept = np.array(values, int)
            columns = {key: numbers[kept] for key, numbers in grid.rows[name].columns.items()}
            axes[name] = Rows([], columns)
        elif name not in LABELS:
            axes[name] = Axis(list(values), np.array(values, float))
    spec = grid.spec.model_copy(
        update={
            "axes": grid.spec.axes.model_copy(update=axes),
            "parameters": {**grid.spec.parameters, **(parameters or {})},
        }
    )
    return replace(
        grid,
        spec=spec,
        models=tuple(grid.models[at] for at in positions["model"]),
        datasets=tuple(grid.datasets[at] for at in positions["dataset"]),
        systems=systems,
        strategies=tuple(grid.strategies[at] for at in positions["strategy"]),
        calibrations={name: fit for name, fit in grid.calibrations.items() if name in names},
    )
