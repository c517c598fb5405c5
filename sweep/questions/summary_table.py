"""Summaries of a cube over its PE counts: read from its store, or computed of any slice of it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from grids.grid import Grid
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.statistics import BEST, SUMMARISED, Objective
from sweep.cube.coordinates import list_coordinates
from sweep.cube.dimensions import restore_axes
from sweep.cube.laws import expect_laws
from sweep.cube.layout import SERIAL
from sweep.cube.object_store import locate_store
from sweep.cube.statistics import EFFICIENCY
from sweep.cube.store import Cube, open_cube
from sweep.questions.lines import Lines
from sweep.questions.missing_files import check_files
from sweep.questions.selection import Selection, locate_values, select
from sweep.questions.stored_summary import read_summary

if TYPE_CHECKING:
    import xarray as xr

Source: TypeAlias = "Cube | xr.Dataset | str | Path"


def open_source(source: Source) -> "Cube | xr.Dataset":
    """The open cube of a store that is named by its place; what is open already as it is."""
    return open_cube(locate_store(source)) if isinstance(source, str | Path) else source


def summarise_slice(
    source: Source,
    selection: Selection | None = None,
    efficiency: float = EFFICIENCY,
    objective: Objective = "epoch_time",
) -> Lines:
    """The summary of a slice: as the store at a path keeps it, if it answers that, else computed.

    objective: whose statistics are asked for.

    InputError: an unknown axis or value; a store of summaries alone that would have to be computed.
    """
    chosen, source = selection or {}, open_source(source)
    # What is kept is of whole lines, and at one efficiency: anything else is computed from cells.
    if isinstance(source, Cube) and "pe" not in chosen and efficiency == EFFICIENCY:
        expect_epochs(source.grid, objective)
        return read_summary(source, chosen)
    from sweep.questions.computed import summarise_cells  # late: JAX and xarray come with it

    cells = _open_cells(source, chosen) if isinstance(source, Cube) else source
    return summarise_cells(select(restore_axes(cells), chosen), efficiency, objective)


def expect_objective(objective: str) -> None:
    """InputError: no objective that summaries have."""
    if objective not in BEST:
        raise InputError(
            f"unknown objective {shorten(objective)}",
            where="objective",
            advice=suggest_name(str(objective), BEST),
        )


def expect_epochs(grid: Grid, objective: Objective) -> None:
    """InputError: times to the target are asked for, and the cube knows no epochs."""
    if objective == "train_time":
        expect_laws(grid, "objective")


def read_machine_grid(source: Source) -> Grid | None:
    """The design space of a cube of the machine oracle, None of any other."""
    source = open_source(source)
    if isinstance(source, Cube):
        grid = source.grid
    else:
        written = json.loads(source.attrs.get("paradl_spec", "{}"))
        if written.get("oracle", "paper") == "paper":
            return None
        grid = Grid.from_definition(written)
    return grid if grid.spec.oracle == "machine" else None


def _open_cells(cube: Cube, selection: Selection) -> "xr.Dataset":
    """The cells of a store, of which those that are selected have all their files."""
    import xarray as xr

    places = locate_values(list_coordinates(cube.grid), selection)
    check_files(cube, (*SUMMARISED, SERIAL), places)
    # Without chunks it needs no Dask, which takes longer to import than a slice to read.
    cells: xr.Dataset = xr.open_zarr(cube.url, chunks=None, zarr_format=3)
    return cells
