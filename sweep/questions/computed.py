"""Summaries of the cells of a cube, for questions that the kept one does not answer."""

from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grids.grid import LABELS
from grids.reading.errors import InputError
from kernels.compiled import compiled
from kernels.statistics import STATISTICS, SUMMARISED
from kernels.summary import Line, tabulate_line
from sweep.cube.statistics import type_statistics
from sweep.engine.compile_cache import keep_programs
from sweep.questions.lines import Lines


def summarise_cells(cube: xr.Dataset, efficiency: float) -> Lines:
    """The summary of a cube, or a slice of one, from its cells."""
    missing = [name for name in SUMMARISED if name not in cube]
    if missing:
        raise InputError(
            f"the cube has no variable {missing[0]!r}, and this question needs its cells",
            advice=f"sweep with outputs: [{', '.join(SUMMARISED)}]",
        )
    keep_programs()
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


def _summarise_lines(part: xr.Dataset, efficiency: float) -> NDArray[np.float64]:
    """The statistics [statistic, others] of one model, dataset, system and strategy."""
    line = Line(
        p=part["pe"].values.reshape(-1, *[1] * (part["limit"].ndim - 1)).astype(float),
        comp_time=part["comp_time"].values.astype(float),
        comm_time=part["comm_time"].values.astype(float),
        memory=part["memory"].values.astype(float),
        limit=part["limit"].values,
        enough=part["serial_time"].values.astype(float)[None] / efficiency,
    )
    return np.asarray(_tabulate(line))


_tabulate = compiled()(tabulate_line)
