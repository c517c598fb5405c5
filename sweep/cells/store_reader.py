"""Read the cells of a store block by block, and refuse stores that have lost files.

Unfinished blocks are skipped. Zarr reads a missing file as fill values, which in a cube say that
the configurations cannot exist: an answer would silently drop a model and name another winner.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from zarr.core.sync import sync

from grids.grid import Grid
from kernels.names.statistics import SUMMARISED, Objective
from sweep.cells.lines import Lines
from sweep.cells.parts import Part
from sweep.cells.reader import Reader
from sweep.cells.selection import Selection, locate_values
from sweep.cells.stored_summary import read_lines
from sweep.cube.coordinates import list_coordinates
from sweep.cube.dimensions import expect_laws
from sweep.cube.layout import NOT_SERIAL, SERIAL, SUMMARY, find_part
from sweep.cube.store import Cube
from sweep.cube.variables import Arrays, Positions
from sweep.errors import RunError

if TYPE_CHECKING:
    import xarray as xr

Places = Mapping[str, Positions]


class StoreReader(Reader):
    """Reader of an open store and its summary."""

    keeps_summary = True

    def __init__(self, cube: Cube) -> None:
        self.cube = cube
        self.place = cube.url

    @property
    def grid(self) -> Grid:
        """Design space of the store."""
        return self.cube.grid

    @cached_property
    def coordinates(self) -> Arrays:
        """Values along each dimension."""
        return list_coordinates(self.cube.grid)

    @property
    def held(self) -> Collection[object]:
        """Names of the stored variables of cells."""
        return (*self.cube.grid.spec.outputs, SERIAL)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes of the store."""
        return self.cube.group.attrs.asdict()

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the software that made the store."""
        return self.cube.versions

    def count_blocks(self) -> tuple[int, int]:
        """Numbers of finished blocks and of all blocks."""
        return int(self.cube.read_done().sum()), self.cube.plan.blocks

    def open_cells(self, selection: Selection, extra: Collection[str] = ()) -> "xr.Dataset":
        """The whole cube, to select from. RunError: files of selected cells are missing.

        extra: names of further variables to check, which a store may lack.
        """
        import xarray as xr

        places = locate_values(self.coordinates, selection, self.columns)
        self.check_files((*SUMMARISED, SERIAL, *extra), places)
        # chunks=None avoids Dask, whose import takes longer than reading a slice.
        cells: xr.Dataset = xr.open_zarr(self.cube.group.store, chunks=None, zarr_format=3)
        return cells

    def open_chunks(self) -> "xr.Dataset":
        """The whole cube, to be read chunk by chunk. RunError: a file is missing."""
        from sweep.engine.run import open_dataset  # late: xarray comes with it

        self.check_files(self.variables, {})
        return open_dataset(self.cube.url)

    def cut_parts(self, names: Collection[str], places: Places, misfits: bool) -> Iterator[Part]:
        """Yield a part for each finished block that overlaps the slice."""
        cube, coordinates = self.cube, self.coordinates
        self.check_files(names, places)
        for block in self._list_finished(places):
            if not (misfits or cube.fits(block)):
                continue
            region = dict(zip(cube.plan.dims, cube.plan.find_region(block), strict=True))
            inside = {
                dim: at[(at >= region[dim].start) & (at < region[dim].stop)]
                for dim, at in places.items()
            }
            yield Part(
                {dim: coordinates[dim][at] for dim, at in inside.items()},
                {name: self._read_array(name, region, inside) for name in names},
            )

    def read_summary(self, selection: Selection, objective: Objective) -> Lines:
        """Stored summary of a slice. InputError: see `summarise`."""
        if objective == "train_time":
            expect_laws(self.grid, "objective")
        chosen = dict.fromkeys(self.coordinates, slice(None)) | locate_values(
            self.coordinates, selection, self.columns
        )
        lines, is_known = read_lines(self.cube, self.coordinates, chosen)
        if not is_known:  # samples that do not fit their model, or missing files
            self.check_files((SUMMARY,), chosen)
        return lines

    def check_files(self, names: Collection[str], places: Mapping[str, Positions | slice]) -> None:
        """Raise RunError for the first missing file of a finished block.

        names: arrays to check. places: positions by dimension; omitted dimensions count in full.
        """
        cube = self.cube
        for block in self._list_finished(places):
            for name in cube.list_arrays(block):
                # One request per file of the slice; listing the store would list all its blocks.
                file = cube.name_file(name, block)
                if name in names and not sync(cube.group.store.exists(file)):
                    raise RunError(
                        f"{cube.url}: {file} is missing, a file of a finished block; "
                        f"list all damage with: paradl status {cube.url} --verify, "
                        "then run the same paradl sweep again",
                        page="damaged-store",
                    )

    def _list_finished(self, places: Mapping[str, Positions | slice]) -> Iterator[int]:
        """Yield the numbers of the finished blocks that overlap a slice."""
        plan = self.cube.plan
        sizes = zip(plan.dims, plan.shape, plan.shard, strict=True)
        at = [
            np.unique(np.arange(size)[places.get(dim, slice(None))] // shard)
            for dim, size, shard in sizes
        ]
        blocks = np.ravel_multi_index(np.ix_(*at), plan.grid).reshape(-1)
        yield from blocks[self.cube.read_done()[blocks]].tolist()

    def _read_array(
        self, name: str, region: Mapping[str, slice], inside: Places
    ) -> NDArray[np.generic]:
        """A block's share of a variable over all dimensions, of size 1 where it does not vary."""
        place = find_part(name, self.cube.plan, tuple(region.values()))
        dims = [dim for dim in region if name != SERIAL or dim not in NOT_SERIAL]
        values = np.asarray(self.cube.arrays[name][place])
        # Indexing with positions copies: skip it for whole blocks.
        picked = [inside[dim] - region[dim].start for dim in dims]
        if tuple(map(len, picked)) != values.shape:
            values = values[np.ix_(*picked)]
        absent = tuple(at for at, dim in enumerate(region) if dim not in dims)
        return np.expand_dims(values, absent)
