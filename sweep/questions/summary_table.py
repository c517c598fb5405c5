"""Summaries of a cube over its PE counts: kept beside it, or made of any slice of it.

A sweep writes them in the pass that writes the cube, so that a question reads a thousandth of its
bytes, and answers without JAX and xarray, which take longer to import.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grids.grid import Grid
from kernels.statistics import COUNTS, SUMMARISED
from sweep.cube import schema
from sweep.cube.create import coordinates
from sweep.cube.dimensions import restore_axes
from sweep.cube.layout import SERIAL, SUMMARY
from sweep.cube.object_store import locate_store
from sweep.cube.schema import EFFICIENCY, Arrays
from sweep.cube.store import Cube, open_cube
from sweep.questions.lines import Lines
from sweep.questions.missing_files import check_files
from sweep.questions.selection import Positions, Selection, positions, select

if TYPE_CHECKING:
    import xarray as xr

Source: TypeAlias = "Cube | xr.Dataset | str | Path"
Place = tuple[Positions | slice, ...]


def summary(
    source: Source, selection: Selection | None = None, efficiency: float = EFFICIENCY
) -> Lines:
    """The summary of a slice: as the store at a path keeps it, if it answers that, else computed.

    InputError: an unknown axis or value; a store of summaries alone that would have to be computed.
    """
    chosen = selection or {}
    if isinstance(source, str | Path):
        source = open_cube(locate_store(source))
    if isinstance(source, Cube) and "pe" not in chosen and efficiency == EFFICIENCY:
        return kept(source, chosen)
    from sweep.questions.computed import computed

    cells = _open_cells(source, chosen) if isinstance(source, Cube) else source
    return computed(select(restore_axes(cells), chosen), efficiency)


def _open_cells(cube: Cube, selection: Selection) -> "xr.Dataset":
    """The cells of a store, of which those that are selected have all their files."""
    import xarray as xr

    check_files(cube, (*SUMMARISED, SERIAL), positions(coordinates(cube.grid), selection))
    # Without chunks it needs no Dask, which takes longer to import than a slice to read.
    cells: xr.Dataset = xr.open_zarr(cube.url, chunks=None, zarr_format=3)
    return cells


def calibrated_grid(source: Source) -> Grid | None:
    """The design space of a cube whose times were calibrated, None of any other."""
    if isinstance(source, str | Path):
        source = open_cube(str(source))
    if isinstance(source, Cube):
        grid = source.grid
    else:
        written = json.loads(source.attrs.get("paradl_spec", "{}"))
        if written.get("calibration", "none") == "none":
            return None
        grid = Grid.from_definition(written)
    return grid if grid.calibration is not None else None


def kept(cube: Cube, selection: Selection) -> Lines:
    """The part of its summary that a store keeps of a slice."""
    every = coordinates(cube.grid)
    chosen: dict[str, Positions | slice] = dict.fromkeys(every, slice(None))
    chosen.update(positions(every, selection))
    others = {dim: values[chosen[dim]] for dim, values in every.items() if dim != "pe"}
    place = tuple(chosen.values())
    table = _read(cube, place)
    if np.isnan(table).all(axis=0).any():  # as of pairs that cannot be, or of files that are gone
        check_files(cube, (SUMMARY,), chosen)
    return Lines(others, _joined(schema.typed(table)))


def _read(cube: Cube, place: Place) -> NDArray[np.float64]:
    """The statistics of a part of the cube [statistic, block along the PE counts, others]."""
    pe = cube.plan.dims.index("pe")
    table = cube.arrays[SUMMARY].oindex[(*place[:pe], slice(None), *place[pe:])]
    return np.moveaxis(np.asarray(table), (pe, pe + 1), (0, 1))


def _joined(parts: Arrays) -> Arrays:
    """One summary of lines of PE counts that lie in several blocks."""
    times, largest, forbidden = (
        parts[name] for name in ("fastest_time", "largest_pe", "forbidden_by")
    )
    fastest = np.where(np.isnan(times), np.inf, times).argmin(axis=0)
    block = np.arange(len(largest)).reshape(-1, *[1] * (largest.ndim - 1))
    holds = np.where(largest > 0, block, 0).max(axis=0)  # the block of the largest
    later = (block >= holds) & (forbidden > 0)
    return {
        **{name: _picked(parts[name], fastest) for name in parts if name.startswith("fastest")},
        "largest_pe": largest.max(axis=0),
        "efficient_pe": parts["efficient_pe"].max(axis=0),
        "forbidden_by": _picked(np.where(later, forbidden, 0), later.argmax(axis=0)),
        **{name: parts[name].sum(axis=0) for name in COUNTS},
    }


def _picked(values: NDArray[Any], block: NDArray[np.intp]) -> NDArray[Any]:
    """Each line's value of one of its blocks."""
    picked: NDArray[Any] = np.take_along_axis(values, block[None], axis=0)[0]
    return picked
