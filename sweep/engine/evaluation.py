"""Evaluate: the outputs of one (model, dataset, system, strategy), alone or in a block's memory."""

from collections.abc import Mapping

import numpy as np
from jax import Array
from numpy.typing import NDArray

from grids.entries.strategies import Strategy
from grids.grid import Grid, Index
from grids.models.layers import Floats
from kernels.blocks.few import answer_few
from kernels.blocks.fill import Buffers, fill_buffers
from kernels.blocks.outputs import compute_outputs
from sweep.cube.statistics import EFFICIENCY
from sweep.cube.variables import Arrays


def evaluate(
    grid: Grid,
    index: Index,
    axes: Mapping[str, Floats] | None = None,
    outputs: tuple[str, ...] | None = None,
    strategy: Strategy | None = None,
) -> Arrays | None:
    """Outputs for one (model, dataset, system, strategy) over `axes`.

    All of the grid's outputs and axes, and the index' strategy, unless others are given. Each array
    has all numeric dims, of size 1 where it does not vary. None where the dataset's samples do not
    fit the model.
    """
    case = grid.case(index, axes, strategy)
    if case is None:
        return None
    values = compute_outputs(case, names=grid.spec.outputs if outputs is None else outputs)
    return {name: np.asarray(value) for name, value in values.items()}


def fill(
    buffers: Buffers,
    place: int,
    grid: Grid,
    index: Index,
    axes: Mapping[str, Floats],
    serial_time: NDArray[np.float32],
) -> tuple[Buffers, Array]:
    """The buffers with one (model, dataset, system, strategy) over `axes` at `place`.

    serial_time [numeric dims but pe]: an epoch on one PE. With it come the statistics [statistic,
    numeric dims but pe], made in the same pass. The buffers that were given are gone.
    """
    case = grid.case(index, axes)
    assert case is not None, index  # all of a block shares one model and dataset, which fit
    return fill_buffers(
        buffers,
        np.asarray(place),
        case,
        # A PE count p is efficient while p times its time is at most this.
        np.asarray(serial_time)[None] / EFFICIENCY,
        shape=tuple(values.size for values in axes.values()),
    )


def answer(
    grid: Grid, index: Index, axes: Mapping[str, Floats], serial_time: NDArray[np.float32]
) -> tuple[Arrays, NDArray[np.float64]]:
    """The outputs and the statistics that `fill` gives, of few cells: without its programs."""
    case = grid.case(index, axes)
    assert case is not None, index
    enough = np.asarray(serial_time)[None] / EFFICIENCY
    outputs, table = answer_few(case, enough, names=grid.spec.outputs)
    return {name: np.asarray(values) for name, values in outputs.items()}, np.asarray(table)
