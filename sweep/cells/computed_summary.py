"""Summaries computed from cells, for questions that the stored one does not answer."""

from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grids.grid import LABELS
from kernels.blocks.summary import Line, tabulate_line
from kernels.compiled import compiled
from kernels.names.statistics import STATISTICS, Objective
from sweep.cells.lines import Lines
from sweep.cube.derived_quantities import Paradl
from sweep.cube.statistics import type_statistics
from sweep.engine.compile_cache import keep_programs


def summarise_cells(cube: xr.Dataset, efficiency: float, objective: Objective) -> Lines:
    """The summary of a cube, or a slice of one, from its cells.

    objective: epochs to a target are counted for train_time alone.
    """
    keep_programs()
    if objective == "train_time":
        cube = add_epochs(cube)
    others = [str(dim) for dim in cube["limit"].dims if dim not in (*LABELS, "pe")]
    shape = [cube.sizes[dim] for dim in (*LABELS, *others)]
    tables = np.empty((len(STATISTICS), *shape))
    for index in product(*(range(cube.sizes[dim]) for dim in LABELS)):
        # One strategy at a time is read: memory does not grow with the slice.
        part = cube.isel(dict(zip(LABELS, index, strict=True))).load()
        place: tuple[int | slice, ...] = (slice(None), *index)
        tables[place] = _summarise_lines(part.transpose("pe", *others), efficiency)
    labels = {dim: cube[dim].values.astype(object) for dim in LABELS}
    return Lines(labels | {dim: cube[dim].values for dim in others}, type_statistics(tables))


def add_epochs(cube: xr.Dataset) -> xr.Dataset:
    """The cube with the epochs of its cells, and those of one PE."""
    derived = Paradl(cube)
    cells, alone = derived.epochs, derived.epochs_alone
    return cube.assign(
        epochs=cells.broadcast_like(cube["limit"]),
        epochs_alone=alone.broadcast_like(cube["limit"].isel(pe=0, drop=True)),
    )


def _summarise_lines(part: xr.Dataset, efficiency: float) -> NDArray[np.float64]:
    """The statistics [statistic, others] of one model, dataset, system and strategy."""
    line = Line(
        p=part["pe"].values.reshape(-1, *[1] * (part["limit"].ndim - 1)).astype(float),
        comp_time=part["comp_time"].values.astype(float),
        comm_time=part["comm_time"].values.astype(float),
        memory=part["memory"].values.astype(float),
        limit=part["limit"].values,
        enough=part["serial_time"].values.astype(float)[None] / efficiency,
        epochs=part["epochs"].values.astype(float) if "epochs_alone" in part else None,
        epochs_alone=part["epochs_alone"].values[None] if "epochs_alone" in part else None,
    )
    return np.asarray(_tabulate(line))


_tabulate = compiled(numpy=True)(tabulate_line)
