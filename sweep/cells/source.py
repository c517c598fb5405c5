"""Sources that questions accept: paths of stores, open cubes, Datasets, and design spaces."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from grids.grid import Grid
from sweep.cells.dataset_reader import DatasetReader, GridReader
from sweep.cells.reader import Reader

if TYPE_CHECKING:
    import xarray as xr

    from sweep.cube.store import Cube

# The cells of a Grid are computed in memory when a question needs them.
Source: TypeAlias = "Reader | Cube | xr.Dataset | Grid | str | Path"


def open_source(source: Source) -> Reader:
    """Open a reader of a source; a reader is returned as it is. InputError: no store there."""
    if isinstance(source, Reader):
        return source
    if isinstance(source, Grid):
        return GridReader(source)
    # late: imports Zarr (0.1 s), which a design space does not need
    from sweep.cells.store_reader import StoreReader
    from sweep.cube.object_store import locate_store
    from sweep.cube.store import Cube, open_cube

    if isinstance(source, str | Path):
        return StoreReader(open_cube(locate_store(source)))
    if isinstance(source, Cube):
        return StoreReader(source)
    return DatasetReader(source)
