"""Read the cells of a store block by block, and its summary; damaged files are refused.

Unfinished blocks are skipped.

A summary has about a thousandth of the cube's bytes, and reading it needs neither JAX nor xarray,
which take longer to import. Statistics are looked up by their stored names, since a store may have
more statistics than this version knows, in another order.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from numpy.typing import NDArray

from paradl.grids.reading.errors import InputError, format_text
from paradl.kernels.names.statistics import BEST, COUNTS, STATISTICS, Objective
from paradl.sweep.cells.parts import Lines, Part
from paradl.sweep.cells.reader import Places, Reader
from paradl.sweep.cells.selection import Selection, locate_values
from paradl.sweep.cube.checked_store import MISSING, check_reads, make_error
from paradl.sweep.cube.dimensions import expect_laws
from paradl.sweep.cube.object_store import is_remote
from paradl.sweep.cube.plan import NOT_SERIAL, SERIAL, SUMMARY, find_part
from paradl.sweep.cube.root import ANEW, name_writer
from paradl.sweep.cube.store import Cube, get_array
from paradl.sweep.cube.variables import (
    VERSION,
    Arrays,
    Positions,
    list_coordinates,
    type_statistics,
)

if TYPE_CHECKING:
    import xarray as xr


class StoreReader(Reader):
    """Reader of an open store and its summary."""

    keeps_summary = True

    def __init__(self, cube: Cube) -> None:
        self.cube = check_reads(cube)
        self.place, self.grid = cube.url, cube.grid

    @cached_property
    def coordinates(self) -> Arrays:
        return list_coordinates(self.grid)

    @property
    def held(self) -> Collection[object]:
        return (*self.grid.spec.outputs, SERIAL)

    @property
    def attributes(self) -> Mapping[str, object]:
        return self.cube.group.attrs.asdict()

    @property
    def versions(self) -> Mapping[str, str]:
        return self.cube.versions

    def count_blocks(self) -> tuple[int, int]:
        return int(self.cube.read_done().sum()), self.cube.plan.blocks

    def open_cells(self) -> "xr.Dataset":
        import xarray as xr

        # chunks=None avoids Dask, whose import takes longer than reading a slice.
        cells: xr.Dataset = xr.open_zarr(self.cube.group.store, chunks=None, zarr_format=3)
        return cells

    def open_chunks(self) -> "xr.Dataset":
        from paradl.sweep.engine.run import open_dataset  # late: xarray comes with it

        return open_dataset(self.cube.url)

    def cut_parts(self, names: Collection[str], places: Places, misfits: bool) -> Iterator[Part]:
        """Yield a part for each finished block that overlaps the slice."""
        cube, coordinates = self.cube, self.coordinates
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
        self._expect_files(chosen)
        return read_lines(self.cube, self.coordinates, chosen)

    def _expect_files(self, places: Mapping[str, Positions | slice]) -> None:
        """Raise RunError if a file of a slice is gone, even where its summary answers.

        Only in a folder, where it takes 85 us per block, and reading its summary 220 us or more
        (2026-11): an object store takes a request per file.
        """
        cube = self.cube
        if is_remote(cube.url):
            return
        for block in self._list_finished(places):
            for name in cube.list_arrays(block):
                file = cube.name_file(name, block)
                if not os.path.exists(f"{cube.url}/{file}"):
                    raise make_error(cube.url, file, MISSING)

    def _list_finished(self, places: Mapping[str, Positions | slice]) -> Iterator[int]:
        """Yield the numbers of the finished blocks that overlap a slice."""
        plan = self.cube.plan
        sizes = zip(plan.dims, plan.shape, plan.shard, strict=True)
        # Indexing a range turns slices into positions, too.
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


def read_lines(cube: Cube, coordinates: Arrays, chosen: Mapping[str, Positions | slice]) -> Lines:
    """Lines of a store's summary at the chosen positions.

    coordinates, chosen: values and positions along all dimensions of the cube, in its order.
    InputError: a summary of another version, or one that lacks a statistic.
    """
    check_version(cube.url, cube.group)
    # Counts may be missing: stores do not know flags that are newer.
    known = (*cube.statistics, *COUNTS)
    missing = [name for name in STATISTICS if name not in known]
    if missing:
        raise InputError(f"damaged: its summary has no {missing[0]!r}", where=cube.url, advice=ANEW)
    others = {dim: values[chosen[dim]] for dim, values in coordinates.items() if dim != "pe"}
    place, pe = tuple(chosen.values()), cube.plan.dims.index("pe")
    # oindex takes the outer product of positions; plain indexing would pair them, as numpy does.
    stored = cube.arrays[SUMMARY].oindex[(*place[:pe], slice(None), *place[pe:])]
    table = np.moveaxis(np.asarray(stored), (pe, pe + 1), (0, 1))  # [statistic, block, others]
    return Lines(others, join_blocks(type_statistics(table, cube.statistics)))


def check_version(url: str, group: zarr.Group) -> None:
    """Raise InputError for a summary of another version, whose statistics may differ in meaning."""
    # The first stores of 0.2.0 state no version; theirs is 1.
    version = get_array(group, SUMMARY).attrs.get("version", 1)
    if version != VERSION:
        raise InputError(
            f"a summary of version {format_text(version)}; this paradl reads version {VERSION}",
            where=url,
            advice=f"use paradl {name_writer(group)}, or sweep again into another store",
        )


def join_blocks(parts: Arrays) -> Arrays:
    """Join the statistics [block, ...] of lines of PE counts that several blocks share."""
    largest, forbidden = parts["largest_pe"], parts["forbidden_by"]
    block = np.arange(len(largest)).reshape(-1, *[1] * (largest.ndim - 1))
    holds = np.where(largest > 0, block, 0).max(axis=0)  # the block of the largest PE count
    # The next PE count is forbidden in that block, or in the first later one that forbids anything.
    later = (block >= holds) & (forbidden > 0)
    return {
        **{name: values for names in BEST.values() for name, values in _join_best(parts, names)},
        "largest_pe": largest.max(axis=0),
        "forbidden_by": _pick_block(np.where(later, forbidden, 0), later.argmax(axis=0)),
        **{name: parts[name].sum(axis=0) for name in COUNTS if name in parts},
    }


def _join_best(parts: Arrays, names: Mapping[str, str]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield each statistic of an objective from the block with the least time."""
    times = parts[names["time"]]
    # Not nanargmin: it raises for a line without any time.
    least = np.where(np.isnan(times), np.inf, times).argmin(axis=0)
    for field, name in names.items():
        # The largest of all blocks, not that of the block with the least time.
        largest = field == "efficient_pe"
        yield name, parts[name].max(axis=0) if largest else _pick_block(parts[name], least)


def _pick_block(values: NDArray[Any], block: NDArray[np.intp]) -> NDArray[Any]:
    """Value of each line from one of its blocks."""
    picked: NDArray[Any] = np.take_along_axis(values, block[None], axis=0)[0]
    return picked
