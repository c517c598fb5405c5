"""Times of contenders by the oracle: seconds an iteration by PE count, their draws, limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jax import Array
from numpy.typing import NDArray

from grids.grid import Grid
from grids.models.layers import Floats
from grids.reading.errors import InputError
from grids.spec import validate_spec
from kernels.blocks.fit import find_limits
from kernels.compiled import compiled, fetch
from kernels.configuration.case import Case
from kernels.namespace import xp
from kernels.oracle.answer import settle_choices
from kernels.oracle.formulas import time_iteration
from kernels.oracle.uncertainty import draw_times
from sweep.answers.numbers import number
from sweep.engine.compile_cache import keep_programs

LEAST = 64  # PE counts at once: as many and powers of two share one compiled program


@dataclass(frozen=True)
class Times:
    """Seconds an iteration [draw, count] with 1, 2 ... PEs, the first draw as expected.

    error [count]: spread of the oracle's error. limits [count]: flags. samples: b of a replica in
    an iteration, over all of its passes.
    """

    seconds: Floats
    error: Floats
    limits: NDArray[np.uint16]
    samples: float

    def draw(self, errors: Floats) -> Floats:
        """Seconds [draw, count] of joint draws; errors [draw]: the oracle's, as normal numbers."""
        # Table III knows no draws: its times are the same in all of them.
        machines, others = len(self.seconds) - 1, len(errors) - 1
        rows = [0, *(min(1, machines) + draw * machines // others for draw in range(others))]
        drawn: Floats = self.seconds[rows] * np.exp(errors[:, None] * self.error)
        return drawn


def build_grid(
    axes: Mapping[str, object],
    parameters: Mapping[str, object],
    settings: Mapping[str, object],
) -> Grid:
    """The design space of one model on one system, with intervals, if the oracle has some."""
    spec = validate_spec({"axes": dict(axes), "parameters": dict(parameters), **settings}, "")
    grid = Grid.from_spec(spec, Path())
    misfit = grid.misfit(0, 0)
    if misfit is not None:
        raise InputError(misfit, where="dataset")
    return grid.ask_intervals()


def time_strategies(grid: Grid, most: int) -> dict[str, Times]:
    """The times of each strategy with 1, 2 ... `most` PEs, by its label."""
    keep_programs()
    counts = np.arange(1.0, max(LEAST, 2 ** (most - 1).bit_length()) + 1)
    labels = grid.labels["strategy"]
    return {label: _time_strategy(grid, n, counts, most) for n, label in enumerate(labels)}


def _time_strategy(grid: Grid, position: int, counts: Floats, most: int) -> Times:
    case = grid.case((0, 0, 0, position), {**grid.axes, "pe": counts})
    assert case is not None  # build_grid has seen that the samples fit
    seconds, error, limits, samples = map(np.asarray, fetch(_time_case(settle_choices(case))))
    return Times(seconds[:, :most], error[:most], limits[:most], number(samples))


@compiled(numpy=True)
def _time_case(case: Case) -> tuple[Array, Array, Array, Array]:
    """Seconds [draw, count], errors and limits [count], and samples of a replica's iteration."""
    count = xp.size(xp.asarray(case.run.p))
    now = time_iteration(case)
    seconds, error = _flatten(now.compute + now.communication, count), xp.zeros(count)
    if case.uncertainty is not None:
        drawn, spread = draw_times(case)
        flat = xp.reshape(drawn, (len(drawn), -1))
        seconds = xp.concatenate([seconds[None], xp.broadcast_to(flat, (len(flat), count))])
        error = _flatten(spread, count)
    else:
        seconds = seconds[None]
    samples = xp.ravel(xp.asarray(case.run.global_batch / case.run.p1))[-1]
    return seconds, error, _flatten(find_limits(case), count), samples


def _flatten(value: object, count: int) -> Array:
    """The values [count] of an array over PE counts, or of one number."""
    return xp.broadcast_to(xp.ravel(xp.asarray(value)), (count,))
