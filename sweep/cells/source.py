"""Summaries of a cube over its PE counts: read from its store, or computed of any slice of it."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from grids.grid import Grid
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.flags import Limit
from kernels.statistics import BEST, SUMMARISED, Objective
from sweep.cells.files import check_files
from sweep.cells.lines import Lines
from sweep.cells.selection import Selection, locate_values, select
from sweep.cells.stored_summary import read_summary
from sweep.cube.coordinates import list_coordinates
from sweep.cube.dimensions import CELLS, restore_axes
from sweep.cube.laws import expect_laws
from sweep.cube.layout import SERIAL
from sweep.cube.object_store import locate_store
from sweep.cube.statistics import EFFICIENCY
from sweep.cube.store import Cube, open_cube

if TYPE_CHECKING:
    import xarray as xr

# A grid is a design space without a store, which is swept in memory where cells are asked for.
Source: TypeAlias = "Cube | xr.Dataset | Grid | str | Path"
# Names in a cube of what a cell of `best` chose: an axis may be called `group`.
CHOSEN = {"group": "group_size", "segments": "segment_count"}
# What answers are made of, as far as a cube has it.
READ = (*SUMMARISED, SERIAL, "epochs", "replicas", *CHOSEN.values())
# [B] So few are read at once: of Dask's arrays each strategy that is read by itself takes 0.1 s.
FEW = 2**26


def open_source(source: Source) -> "Cube | xr.Dataset | Grid":
    """The open cube of a store that is named by its place; what is open already as it is."""
    return open_cube(locate_store(source)) if isinstance(source, str | Path) else source


def open_computed(source: Source) -> "Cube | xr.Dataset":
    """The same, of a design space its cells."""
    opened = open_source(source)
    if isinstance(opened, Grid):
        from sweep.cells.memory_cube import compute_cells

        return compute_cells(opened)
    return opened


def expect_objective(objective: str) -> None:
    """InputError: no objective that summaries have."""
    if objective not in BEST:
        raise InputError(
            f"unknown objective {shorten(objective)}",
            where="objective",
            advice=suggest_name(str(objective), BEST),
        )


def summarise_slice(
    source: Source,
    selection: Selection | None = None,
    efficiency: float = EFFICIENCY,
    objective: Objective = "epoch_time",
    max_global_batch: int | None = None,
) -> Lines:
    """The summary of a slice: as the store at a path keeps it, if it answers that, else computed.

    objective: whose statistics are asked for. max_global_batch: beyond it cells are forbidden.

    InputError: an unknown axis or value; a store of summaries alone that would have to be computed.
    """
    chosen, source = selection or {}, open_source(source)
    # What is kept is of whole lines, and at one efficiency: anything else is computed from cells.
    whole = "pe" not in chosen and max_global_batch is None
    if isinstance(source, Cube) and whole and efficiency == EFFICIENCY:
        expect_epochs(source.grid, objective)
        return read_summary(source, chosen)
    from sweep.cells.computed_summary import summarise_cells  # late: JAX and xarray come with it

    cells = read_cells(source, chosen, max_global_batch)
    return summarise_cells(cells, efficiency, objective)


def read_cells(
    source: Source,
    selection: Selection | None = None,
    max_global_batch: int | None = None,
    extra: Collection[str] = (),
) -> "xr.Dataset":
    """The cells of a slice, over all dimensions of a cube; many stay where they are stored.

    max_global_batch: cells beyond it are forbidden. extra: variables beside the usual ones, where
    the cube has them. InputError as of `summarise_slice`.
    """
    chosen, source = selection or {}, open_computed(source)
    cells = open_cells(source, chosen, extra) if isinstance(source, Cube) else source
    part = select(restore_axes(cells, (*CELLS, *extra)), chosen)
    missing = [name for name in SUMMARISED if name not in part]
    if missing:
        raise InputError(
            f"the cube has no variable {missing[0]!r}, and this question needs its cells",
            advice=f"sweep with outputs: [{', '.join(SUMMARISED)}]",
        )
    part = part[[name for name in (*READ, *extra) if name in part]]
    if part.nbytes <= FEW:
        part = part.compute()
    return part if max_global_batch is None else _bound_batches(part, max_global_batch)


def _bound_batches(cells: "xr.Dataset", most: int) -> "xr.Dataset":
    """The cells, of which those of larger global batches are forbidden."""
    import numpy as np

    from sweep.cube.derived import Paradl

    if most < 1:
        raise InputError(f"expected at least 1, got {most}", where="max_global_batch")
    limit = cells["limit"]
    beyond = (Paradl(cells).global_batch > most).broadcast_like(limit).transpose(*limit.dims)
    flags = beyond.astype(np.uint16) * np.uint16(Limit.NO_CONVERGENCE)
    # What does not divide, or cannot be, has no global batch of its own.
    told = np.uint16(Limit.GROUP_DOES_NOT_DIVIDE | Limit.INCOMPATIBLE)
    bounded = (limit | flags).where((limit & told) == 0, limit).astype(np.uint16)
    return cells.assign(limit=bounded.assign_attrs(limit.attrs))


def expect_epochs(grid: Grid, objective: Objective) -> None:
    """InputError: times to the target are asked for, and the cube knows no epochs."""
    if objective == "train_time":
        expect_laws(grid, "objective")


def read_machine_grid(source: Source) -> Grid | None:
    """The design space of a cube of the machine oracle, None of any other."""
    source = open_source(source)
    if isinstance(source, Cube):
        grid = source.grid
    elif isinstance(source, Grid):
        grid = source
    else:
        written = json.loads(source.attrs.get("paradl_spec", "{}"))
        if written.get("oracle", "paper") == "paper":
            return None
        grid = Grid.from_definition(written)
    return grid if grid.spec.oracle == "machine" else None


def open_cells(cube: Cube, selection: Selection, extra: Collection[str] = ()) -> "xr.Dataset":
    """The cells of a store, of which those that are selected have all their files.

    extra: names of variables beside the usual ones, which a store need not have.
    """
    import xarray as xr

    places = locate_values(list_coordinates(cube.grid), selection)
    check_files(cube, (*SUMMARISED, SERIAL, *extra), places)
    # Without chunks it needs no Dask, which takes longer to import than a slice to read.
    cells: xr.Dataset = xr.open_zarr(cube.group.store, chunks=None, zarr_format=3)
    return cells
