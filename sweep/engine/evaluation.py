"""Evaluate the outputs of one (model, data set, system, strategy), alone or in a block's memory."""

from collections.abc import Mapping
from concurrent.futures import Executor
from math import prod
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import LABELS, Grid, Index
from paradl.kernels.arrays import xp
from paradl.kernels.blocks.fill import Buffers, answer_few, fill_buffers, put_outputs
from paradl.kernels.blocks.outputs import compute_outputs
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.statistics import EFFICIENCY
from paradl.kernels.names.stored import split_elasticity
from paradl.sweep.cube.plan import NOT_SERIAL, Plan, Region
from paradl.sweep.cube.variables import Arrays

# A cube of so few places (models, data sets, systems and strategies) and cells is answered in
# numpy: 20 ms a place, where each of the strategies' programs takes 2 s to compile.
FEW_PLACES, FEW_CELLS = 128, 2**16


def has_few_cells(grid: Grid, plan: Plan) -> bool:
    """True if numpy answers the whole cube before programs for it would be compiled."""
    places = prod(plan.shape[: len(LABELS)])
    # Numpy has no derivatives, but layouts come with theirs.
    derived = None in grid.blocks and any(map(split_elasticity, grid.spec.outputs))
    return places <= FEW_PLACES and plan.cells <= FEW_CELLS and not derived


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
    """Seconds of an epoch on one PE [numeric dims but pe] of an index, whatever its strategy."""
    one = {**axes, "pe": np.ones(1)}
    outputs = evaluate(grid, index, one, ("comp_time", "comm_time"), grid.find_alone(index))
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
    case, enough = _read_case(grid, index, axes, serial_time)
    where = np.asarray(place)
    if case.in_numpy:
        outputs, table = answer_few(case, enough, names=tuple(buffers))
        return put_outputs(buffers, outputs, where), xp.asarray(table)
    return fill_buffers(buffers, where, case, enough, shape=_find_shape(axes))


def compile_fill(
    pool: Executor, buffers: Any, grid: Grid, index: Index, axes: Mapping[str, Floats]
) -> None:
    """Compile in the pool what `fill` runs. buffers: `jax.ShapeDtypeStruct`s are enough."""
    shape = _find_shape(axes)
    case, enough = _read_case(grid, index, axes, np.ones(shape[1:], np.float32))
    if not case.in_numpy:
        fill_buffers.compile_ahead(pool, buffers, np.asarray(0), case, enough, shape=shape)


def answer(
    grid: Grid, index: Index, axes: Mapping[str, Floats], serial_time: NDArray[np.float32]
) -> tuple[Arrays, NDArray[np.float64]]:
    """Return the outputs and statistics of `fill` for few cells, without its programs."""
    outputs, table = answer_few(
        *_read_case(grid, index, axes, serial_time), names=grid.spec.outputs
    )
    return {name: np.asarray(values) for name, values in outputs.items()}, np.asarray(table)


def _read_case(
    grid: Grid, index: Index, axes: Mapping[str, Floats], serial_time: NDArray[np.float32]
) -> tuple[Case, NDArray[np.float32]]:
    """Return the case, and PE seconds in which an epoch is still efficient."""
    case = grid.case(index, axes)
    assert case is not None, index  # a block has one model and data set, which fit
    # A PE count p is efficient while p times its time is at most this.
    return case, np.asarray(serial_time)[None] / EFFICIENCY


def _find_shape(axes: Mapping[str, Floats]) -> tuple[int, ...]:
    return tuple(values.size for values in axes.values())


Times = NDArray[np.float32]
# Bytes of serial times that are kept, beside those of the last block.
KEPT = 2**24


class SerialTimes:
    """Times of an epoch on one PE, by place, of one grid; of another grid, they are forgotten.

    Blocks that differ only in strategy and PE counts share them: finding them takes 5 of the 16 to
    21 ms of CPU that a block of 4.2 million cells takes, by Table III 2 of 12 to 16. With times
    kept, a search by the default oracle took 0.72 to 0.96 of the CPU time (2026-11).
    """

    def __init__(self) -> None:
        self._grid: Grid | None = None
        self._times: dict[tuple[tuple[int, int], ...], Times] = {}

    def find(self, grid: Grid, plan: Plan, region: Region, axes: Mapping[str, Floats]) -> Times:
        """Return the time of an epoch on one PE [system, batch ...] in a block, in seconds."""
        if self._grid is not grid:
            self._grid, self._times = grid, {}
        parts = zip(plan.dims, region, strict=True)
        place = tuple((part.start, part.stop) for dim, part in parts if dim not in NOT_SERIAL)
        if place not in self._times:
            model, dataset, systems, _ = region[: len(LABELS)]
            others = [values.size for name, values in axes.items() if name != "pe"]
            times = np.empty((systems.stop - systems.start, *others), np.float32)
            for n, system in enumerate(range(systems.start, systems.stop)):
                times[n] = time_alone(grid, (model.start, dataset.start, system, 0), axes)
            if sum(kept.nbytes for kept in self._times.values()) + times.nbytes > KEPT:
                self._times = {}
            self._times[place] = times
        return self._times[place]


# Of this process; blocks ask one at a time.
SERIAL_TIMES = SerialTimes()
