"""Compute summaries from cells, where the stored summary does not answer the question."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS
from paradl.kernels.blocks.summary import Line, tabulate_line
from paradl.kernels.compiled import compiled
from paradl.kernels.names.statistics import STATISTICS
from paradl.sweep.cells.parts import Lines, Part
from paradl.sweep.cube.plan import SERIAL
from paradl.sweep.cube.variables import Arrays, type_statistics
from paradl.sweep.engine.resources import keep_programs


def summarise_parts(coordinates: Arrays, parts: Iterable[Part], efficiency: float) -> Lines:
    """Summary of a slice with these values along its dimensions, from a part per strategy."""
    keep_programs()
    # Parts come in the cube's order, so together they fill the labels' dimensions.
    tables = np.stack([_summarise_strategy(part, efficiency) for part in parts], axis=1)
    others = {dim: values for dim, values in coordinates.items() if dim != "pe"}
    shape = tuple(map(len, others.values()))
    return Lines(others, type_statistics(tables.reshape(len(STATISTICS), *shape)))


def _summarise_strategy(part: Part, efficiency: float) -> NDArray[np.float64]:
    """Statistics [statistic, others] of one model, data set, system and strategy."""
    # PE counts come first; what does not vary along them has one.
    cells = {name: values[(0,) * len(LABELS)] for name, values in part.arrays.items()}
    trains = "epochs_alone" in cells
    line = Line(
        p=part.along("pe")[(0,) * len(LABELS)].astype(float),
        comp_time=cells["comp_time"].astype(float),
        comm_time=cells["comm_time"].astype(float),
        memory=cells["memory"].astype(float),
        limit=cells["limit"],
        enough=cells[SERIAL].astype(float) / efficiency,
        epochs=cells["epochs"].astype(float) if trains else None,
        epochs_alone=cells["epochs_alone"] if trains else None,
    )
    return np.asarray(_tabulate(line))


_tabulate = compiled(numpy=True)(tabulate_line)
