"""A slice of a cube as the kernels' cases, for what the cube does not hold."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grids.entries.strategies import Strategy
from grids.grid import LABELS, Grid

if TYPE_CHECKING:
    import xarray as xr

    from kernels.case import Case


def narrow_grid(grid: Grid, cells: "xr.Dataset") -> Grid:
    """The part of a design space that cells with one value of each label are of."""
    at = {dim: grid.labels[dim].index(str(cells[dim].item())) for dim in LABELS}
    return replace(
        grid,
        models=(grid.models[at["model"]],),
        datasets=(grid.datasets[at["dataset"]],),
        systems=(grid.systems[at["system"]],),
        strategies=(grid.strategies[at["strategy"]],),
    )


def build_case(grid: Grid, cells: "xr.Dataset", strategy: Strategy | None = None) -> "Case":
    """The case of cells that exist, over their own PE counts and other values.

    strategy: takes the place of the cells' own.
    """
    from sweep.engine.compile_cache import keep_programs

    keep_programs()
    axes = {name: cells[name].values.astype(float) for name in grid.axes}
    values = {name: np.atleast_1d(each) for name, each in axes.items()}
    case = grid.case((0, 0, 0, 0), values, strategy)
    assert case is not None  # pictures are of cells that something allows
    return case
