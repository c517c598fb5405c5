"""Sources of questions, and their summaries over PE counts: read from a store, or computed."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from grids.grid import Grid
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.names.flags import Limit
from kernels.names.statistics import BEST, SUMMARISED, Objective
from sweep.cells.files import check_files
from sweep.cells.lines import Lines
from sweep.cells.selection import Selection, locate_values, select
from sweep.cells.stored_summary import read_summary
from sweep.cube.coordinates import list_columns, list_coordinates
from sweep.cube.dimensions import CELLS, restore_axes
from sweep.cube.laws import expect_laws
from sweep.cube.layout import SERIAL
from sweep.cube.object_store import locate_store
from sweep.cube.statistics import EFFICIENCY
from sweep.cube.store import Cube, open_cube

if TYPE_CHECKING:
    import xarray as xr

# A grid is a design space without a store, which is swept in memory where cells are needed.
Source: TypeAlias = "Cube | xr.Dataset | Grid | str | Path"
# Names in a cube of what a cell of `best` chose: an axis may be called `group`.
CHOSEN = {"group": "group_size", "segments": "segment_count"}
# The variables that answers are made of, as far as a cube has them.
READ = (*SUMMARISED, SERIAL, "epochs", "replicas", *CHOSEN.values())
# [B] Fewer are read at once: each strategy read by itself from Dask's arrays takes 0.1 s.
FEW = 2**26


def open_source(source: Source) -> "Cube | xr.Dataset | Grid":
    """The open cube of a store given by its place; any other source as it is."""
    return open_cube(locate_store(source)) if isinstance(source, str | Path) else source


def read_grid(source: "Cube | xr.Dataset | Grid") -> Grid:
    """The design space of an open source. InputError: a Dataset that is no cube."""
    if isinstance(source, Grid):
        return source
    if isinstance(source, Cube):
        return source.grid
    if "paradl_spec" not in getattr(source, "attrs", {}):
        raise InputError(
            "this Dataset is no cube of paradl's: it has no attribute paradl_spec",
            advice="open one with sweep.open_dataset(STORE)",
        )
    return Grid.from_definition(json.loads(source.attrs["paradl_spec"]))


def open_computed(source: Source) -> "Cube | xr.Dataset":
    """The open source; the cells of a design space, computed in memory."""
    opened = open_source(source)
    if isinstance(opened, Grid):
        from sweep.cells.memory_cube import compute_cells

        return compute_cells(opened)
    return opened


def expect_objective(objective: str) -> None:
    """InputError: an objective that summaries do not have."""
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

    objective: its statistics are needed. max_global_batch: larger batches are forbidden.

    InputError: an unknown axis or value; a store that keeps summaries alone, of other lines.
    """
    chosen, source = selection or {}, open_source(source)
    # The store keeps whole lines at one efficiency: anything else is computed from cells.
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

    max_global_batch: larger batches are forbidden. extra: variables beside the usual ones, where
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
    """The cells with larger global batches forbidden."""
    import numpy as np

    from sweep.cube.derived_quantities import Paradl

    if most < 1:
        raise InputError(f"expected at least 1, got {most}", where="max_global_batch")
    limit = cells["limit"]
    beyond = (Paradl(cells).global_batch > most).broadcast_like(limit).transpose(*limit.dims)
    flags = beyond.astype(np.uint16) * np.uint16(Limit.NO_CONVERGENCE)
    # A group that does not divide, or samples that do not fit, have no global batch.
    exempt = np.uint16(Limit.GROUP_DOES_NOT_DIVIDE | Limit.INCOMPATIBLE)
    bounded = (limit | flags).where((limit & exempt) == 0, limit).astype(np.uint16)
    return cells.assign(limit=bounded.assign_attrs(limit.attrs))


def expect_epochs(grid: Grid, objective: Objective) -> None:
    """InputError: a time to the target of a cube that knows no epochs."""
    if objective == "train_time":
        expect_laws(grid, "objective")


def read_machine_grid(source: Source) -> Grid | None:
    """The design space of a cube of the machine oracle, None of any other."""
    grid = read_grid(open_source(source))
    return grid if grid.spec.oracle == "machine" else None


def open_cells(cube: Cube, selection: Selection, extra: Collection[str] = ()) -> "xr.Dataset":
    """The cells of a store; RunError: files of the selected ones are gone.

    extra: names of more variables, which a store need not have.
    """
    import xarray as xr

    every, columns = list_coordinates(cube.grid), list_columns(cube.grid)
    places = locate_values(every, selection, columns)
    check_files(cube, (*SUMMARISED, SERIAL, *extra), places)
    # Without chunks it needs no Dask, which takes longer to import than a slice to read.
    cells: xr.Dataset = xr.open_zarr(cube.group.store, chunks=None, zarr_format=3)
    return cells
