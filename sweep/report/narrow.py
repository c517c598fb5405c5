"""Design spaces narrowed to a place, whose cells the kernels compute on the spot."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from paradl.grids.axes import Axis
from paradl.grids.grid import LABELS, Grid
from paradl.grids.rows import Rows
from paradl.sweep.cells.selection import locate_label


def narrow_grid(grid: Grid, place: Mapping[str, Any], parameters: Mapping[str, float]) -> Grid:
    """Narrow a design space to a label or a value of some axes, with other fixed parameters.

    A row is renumbered 0. InputError: an unknown label.
    """
    positions = {
        dim: [locate_label(grid, dim, place[dim])] if dim in place else range(len(grid.labels[dim]))
        for dim in LABELS
    }
    axes: dict[str, Axis | Rows] = {}
    for name, value in place.items():
        if name in grid.rows:
            columns = grid.rows[name].columns.items()
            axes[name] = Rows([], {key: numbers[[int(value)]] for key, numbers in columns})
        elif name not in LABELS:
            axes[name] = Axis([value], np.array([value], float))
    spec = grid.spec.model_copy(
        update={
            "axes": grid.spec.axes.model_copy(update=axes),
            "parameters": {**grid.spec.parameters, **parameters},
        }
    )
    systems = tuple(grid.systems[at] for at in positions["system"])
    fits = grid.calibrations
    return replace(
        grid,
        spec=spec,
        models=tuple(grid.models[at] for at in positions["model"]),
        datasets=tuple(grid.datasets[at] for at in positions["dataset"]),
        systems=systems,
        strategies=tuple(grid.strategies[at] for at in positions["strategy"]),
        calibrations={one.name: fits[one.name] for one in systems if one.name in fits},
    )
