"""Sources that questions accept: paths of stores, open cubes, Datasets, and design spaces.

Questions open a source as a reader of its cells, or as a space if they call the kernels.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from paradl.grids.design_space import bound_batches
from paradl.grids.grid import LABELS, Grid
from paradl.kernels.names.statistics import SUMMARISED
from paradl.sweep.cells.parts import Part
from paradl.sweep.cells.reader import Reader
from paradl.sweep.cells.selection import Selection, locate_label
from paradl.sweep.cells.space import Space
from paradl.sweep.cube.variables import list_coordinates

if TYPE_CHECKING:
    import xarray as xr

    from paradl.sweep.cube.store import Cube


class GridReader(Reader):
    """Reader of a design space without a store, whose cells are computed when needed."""

    place = "the design space"
    versions: Mapping[str, str] = {}  # it is computed now

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.coordinates = list_coordinates(grid)

    def read_strategies(
        self,
        selection: Selection,
        max_global_batch: int | None,
        trains: Callable[[str, str], bool] = lambda model, dataset: False,
    ) -> Iterator[Part]:
        """The same, without xarray for all cells: its import takes 0.4 s."""
        labels = self.grid.labels
        # A Dataset is needed to slice cells, to bound batches and to add epochs.
        if (
            selection
            or max_global_batch is not None
            or not set(SUMMARISED) <= set(self.grid.spec.outputs)
            or any(trains(*pair) for pair in product(labels["model"], labels["dataset"]))
        ):
            return super().read_strategies(selection, max_global_batch, trains)
        return self._part.split_strategies()

    @cached_property
    def _part(self) -> Part:
        from paradl.sweep.cells.memory_cube import compute_part  # late: imports JAX

        return compute_part(self.grid)

    def open_chunks(self) -> "xr.Dataset":
        return self._computed

    @cached_property
    def _computed(self) -> "xr.Dataset":
        from paradl.sweep.cells.memory_cube import compute_cells  # late: imports JAX

        return compute_cells(self.grid)


# The cells of a Grid are computed in memory when a question needs them.
Source: TypeAlias = "Reader | Cube | xr.Dataset | Grid | str | Path"


def open_source(source: Source) -> Reader:
    """Open a reader of a source; a reader is returned as it is. InputError: no store there."""
    if isinstance(source, Reader):
        return source
    if isinstance(source, Grid):
        return GridReader(source)
    # late: imports Zarr (0.1 s), which a design space does not need
    from paradl.sweep.cells.store_reader import StoreReader
    from paradl.sweep.cube.object_store import locate_store
    from paradl.sweep.cube.store import Cube, open_cube

    if isinstance(source, str | Path):
        return StoreReader(open_cube(locate_store(source)))
    if isinstance(source, Cube):
        return StoreReader(source)
    return Reader(source)


def open_space(
    source: Source, selection: Selection | None = None, max_global_batch: int | None = None
) -> Space:
    """Open the space of a store, a Dataset or a grid at the selected values.

    max_global_batch: forbids larger batches. InputError: no cube, or an unknown axis or value.
    """
    reader = open_source(source)
    grid, kept = reader.grid, reader.list_values(selection or {})
    space = Space(
        grid,
        {dim: tuple(locate_label(grid, dim, str(name)) for name in kept[dim]) for dim in LABELS},
        {dim: np.asarray(kept[dim], float) for dim in grid.axes},
    )
    if max_global_batch is None:
        return space
    return replace(space, grid=bound_batches(grid, max_global_batch))
