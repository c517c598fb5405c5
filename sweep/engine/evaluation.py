"""Evaluate the outputs of one (model, data set, system, strategy), alone or in a block's memory."""

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from grids.entries.strategies import Strategy
from grids.grid import Grid, Index
from kernels.blocks.few import answer_few
from kernels.blocks.fill import Buffers, fill_buffers
from kernels.blocks.outputs import compute_outputs
from kernels.configuration.answers import AnyCase
from kernels.names.arrays import Floats
from sweep.cube.statistics import EFFICIENCY
from sweep.cube.variables import Arrays


def evaluate(
    grid: Grid,
    index: Index,
    axes: Mapping[str, Floats] | None = None,
    outputs: tuple[str, ...] | None = None,
    strategy: Strategy | None = None,
) -> Arrays | None:
    """Return outputs of one (model, data set, system, strategy) over `axes`.

    By default all outputs and axes of the grid, and the strategy of the index. Each array has all
    numeric dims, of size 1 where it does not vary. None if the samples do not fit the model.
    """
    case = grid.case(index, axes, strategy)
    if case is None:
        return None
    values = compute_outputs(case, names=grid.spec.outputs if outputs is None else outputs)
    return {name: np.asarray(value) for name, value in values.items()}


def time_alone(grid: Grid, index: Index, axes: Mapping[str, Floats]) -> NDArray[Any]:
    """Seconds of an epoch on one PE [numeric dims but pe] of an index, whatever its strategy.

    The samples have to fit the model.
    """
    one = {**axes, "pe": np.ones(1)}
    outputs = evaluate(grid, index, one, ("comp_time", "comm_time"), grid.alone)
    assert outputs is not None
    # Even one PE's layout waits between iterations, which counts as communication.
    return np.asarray((outputs["comp_time"] + outputs["comm_time"])[0])


def fill(
    buffers: Buffers,
    place: int,
    grid: Grid,
    index: Index,
    axes: Mapping[str, Floats],
    serial_time: NDArray[np.float32],
) -> tuple[Buffers, Array]:
    """Return the buffers with one (model, data set, system, strategy) over `axes` at `place`, and
    the statistics [statistic, numeric dims but pe], made in the same pass.

    serial_time [numeric dims but pe]: an epoch on one PE. The given buffers are used up.
    """
    inputs = _list_inputs(place, grid, index, axes, serial_time)
    return fill_buffers(buffers, *inputs, shape=_find_shape(axes))


def compile_fill(
    pool: Executor, buffers: Any, grid: Grid, index: Index, axes: Mapping[str, Floats]
) -> None:
    """Compile in the pool what `fill` runs. buffers: `jax.ShapeDtypeStruct`s are enough."""
    shape = _find_shape(axes)
    serial_time = np.ones(shape[1:], np.float32)
    inputs = _list_inputs(0, grid, index, axes, serial_time)
    fill_buffers.compile_ahead(pool, buffers, *inputs, shape=shape)


def answer(
    grid: Grid, index: Index, axes: Mapping[str, Floats], serial_time: NDArray[np.float32]
) -> tuple[Arrays, NDArray[np.float64]]:
    """Return the outputs and statistics of `fill` for few cells, without its programs."""
    case = grid.case(index, axes)
    assert case is not None, index
    enough = np.asarray(serial_time)[None] / EFFICIENCY
    outputs, table = answer_few(case, enough, names=grid.spec.outputs)
    return {name: np.asarray(values) for name, values in outputs.items()}, np.asarray(table)


def _list_inputs(
    place: int,
    grid: Grid,
    index: Index,
    axes: Mapping[str, Floats],
    serial_time: NDArray[np.float32],
) -> tuple[NDArray[np.int64], AnyCase, NDArray[np.float32]]:
    """Return the place, the case, and PE seconds in which an epoch is still efficient."""
    case = grid.case(index, axes)
    assert case is not None, index  # a block has one model and data set, which fit
    # A PE count p is efficient while p times its time is at most this.
    return np.asarray(place), case, np.asarray(serial_time)[None] / EFFICIENCY


def _find_shape(axes: Mapping[str, Floats]) -> tuple[int, ...]:
    return tuple(values.size for values in axes.values())
