"""Time of an epoch on one PE, to which a block's efficiencies relate.

Blocks that differ only in strategy and PE counts share it. Finding it takes 5 of the 16 to 21 ms of
CPU that a block of 4.2 million cells takes, by Table III 2 of 12 to 16. With times kept, a search
by the default oracle took 0.72 to 0.96 of the CPU time (four paired rounds, 2026-11).
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.grid import LABELS, Grid, Index
from kernels.names.arrays import Floats
from sweep.cube.layout import NOT_SERIAL
from sweep.cube.plan import Plan, Region

Times = NDArray[np.float32]
# The time of an epoch on one PE of a model, data set and system: `evaluation.time_alone`.
Measure = Callable[[Grid, Index, Mapping[str, Floats]], NDArray[Any]]

# Bytes kept, beside those of the last block.
KEPT = 2**24


class SerialTimes:
    """Times of one grid, by place; of another grid, they are forgotten."""

    def __init__(self) -> None:
        self._grid: Grid | None = None
        self._times: dict[tuple[tuple[int, int], ...], Times] = {}

    def find(
        self, grid: Grid, plan: Plan, region: Region, axes: Mapping[str, Floats], measure: Measure
    ) -> Times:
        """Return the time of an epoch on one PE [system, batch ...] in a block, in seconds."""
        if self._grid is not grid:
            self._grid, self._times = grid, {}
        parts = zip(plan.dims, region, strict=True)
        place = tuple((part.start, part.stop) for dim, part in parts if dim not in NOT_SERIAL)
        if place not in self._times:
            times = _time_serial(grid, axes, region, measure)
            if sum(kept.nbytes for kept in self._times.values()) + times.nbytes > KEPT:
                self._times = {}
            self._times[place] = times
        return self._times[place]


def _time_serial(grid: Grid, axes: Mapping[str, Floats], region: Region, measure: Measure) -> Times:
    model, dataset, systems, _ = region[: len(LABELS)]
    others = [values.size for name, values in axes.items() if name != "pe"]
    times = np.empty((systems.stop - systems.start, *others), np.float32)
    for n, system in enumerate(range(systems.start, systems.stop)):
        times[n] = measure(grid, (model.start, dataset.start, system, 0), axes)
    return times


# Of this process; blocks ask one at a time.
SERIAL_TIMES = SerialTimes()
