"""Compute summaries from cells, where the stored summary does not answer the question."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.grid import LABELS
from kernels.blocks.summary import Line, tabulate_line
from kernels.compiled import compiled
from kernels.names.statistics import STATISTICS, Objective
from sweep.cells.lines import Lines
from sweep.cells.parts import Part
from sweep.cube.layout import SERIAL
from sweep.cube.statistics import type_statistics
from sweep.cube.variables import Arrays
from sweep.engine.compile_cache import keep_programs

if TYPE_CHECKING:
    import xarray as xr


def summarise_part(whole: Part, efficiency: float) -> Lines:
    """Summary of all cells of a design space, without epochs to a target."""
    others = {dim: at for dim, at in whole.coordinates.items() if dim != "pe"}
    tables = [_summarise_strategy(part, efficiency) for part in whole.split_strategies()]
    shape = tuple(map(len, others.values()))
    stacked = np.stack(tables, axis=1).reshape(len(STATISTICS), *shape)
    return Lines(others, type_statistics(stacked))


def _summarise_strategy(part: Part, efficiency: float) -> NDArray[np.float64]:
    """Statistics [statistic, others] of one model, data set, system and strategy."""
    cells = {name: values[(0,) * len(LABELS)] for name, values in part.arrays.items()}
    cells[SERIAL] = cells[SERIAL][0]
    return _summarise_lines(part.coordinates["pe"], cells, efficiency)


def summarise_cells(cube: "xr.Dataset", efficiency: float, objective: Objective) -> Lines:
    """Summary of a cube, or of a slice, from its cells.

    objective: epochs to the target are derived only for train_time.
    """
    keep_programs()
    if objective == "train_time":
        cube = add_epochs(cube)
    others = [str(dim) for dim in cube["limit"].dims if dim not in (*LABELS, "pe")]
    shape = [cube.sizes[dim] for dim in (*LABELS, *others)]
    tables = np.empty((len(STATISTICS), *shape))
    for index in product(*(range(cube.sizes[dim]) for dim in LABELS)):
        # Load one strategy at a time, so memory does not grow with the slice.
        part = cube.isel(dict(zip(LABELS, index, strict=True))).load()
        place: tuple[int | slice, ...] = (slice(None), *index)
        part = part.transpose("pe", *others)
        arrays = {str(name): part[name].values for name in part.data_vars}
        tables[place] = _summarise_lines(part["pe"].values, arrays, efficiency)
    labels = {dim: cube[dim].values.astype(object) for dim in LABELS}
    return Lines(labels | {dim: cube[dim].values for dim in others}, type_statistics(tables))


def add_epochs(cube: "xr.Dataset") -> "xr.Dataset":
    """Add the epochs of each cell, and those of one PE, to a cube."""
    from sweep.cube.derived_quantities import Paradl  # late: xarray comes with it

    derived = Paradl(cube)
    cells, alone = derived.epochs, derived.epochs_alone
    return cube.assign(
        epochs=cells.broadcast_like(cube["limit"]),
        epochs_alone=alone.broadcast_like(cube["limit"].isel(pe=0, drop=True)),
    )


def _summarise_lines(pe: NDArray[Any], cells: Arrays, efficiency: float) -> NDArray[np.float64]:
    """Statistics [statistic, others] from cells with the PE counts along their first axis."""
    trains = "epochs_alone" in cells
    line = Line(
        p=pe.reshape(-1, *[1] * (cells["limit"].ndim - 1)).astype(float),
        comp_time=cells["comp_time"].astype(float),
        comm_time=cells["comm_time"].astype(float),
        memory=cells["memory"].astype(float),
        limit=cells["limit"],
        enough=cells[SERIAL].astype(float)[None] / efficiency,
        epochs=cells["epochs"].astype(float) if trains else None,
        epochs_alone=cells["epochs_alone"][None] if trains else None,
    )
    return np.asarray(_tabulate(line))


_tabulate = compiled(numpy=True)(tabulate_line)
