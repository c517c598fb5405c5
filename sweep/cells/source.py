"""Sources of questions: stores by their places, Datasets, and design spaces without a store."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from grids.grid import Grid
from sweep.cells.dataset_reader import DatasetReader, GridReader
from sweep.cells.reader import Reader

if TYPE_CHECKING:
    import xarray as xr

    from sweep.cube.store import Cube

# A grid is a design space without a store, which is computed in memory where cells are needed.
Source: TypeAlias = "Reader | Cube | xr.Dataset | Grid | str | Path"


def open_source(source: Source) -> Reader:
    """The reader of a source; one that is open stays so. InputError: there is no store."""
    if isinstance(source, Reader):
        return source
    if isinstance(source, Grid):
        return GridReader(source)
    # late: Zarr comes with it, 0.1 s, which a design space does not need
    from sweep.cells.store_reader import StoreReader
    from sweep.cube.object_store import locate_store
    from sweep.cube.store import Cube, open_cube

    if isinstance(source, str | Path):
        return StoreReader(open_cube(locate_store(source)))
    if isinstance(source, Cube):
        return StoreReader(source)
    return DatasetReader(source)
