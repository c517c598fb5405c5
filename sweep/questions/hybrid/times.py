"""The oracle's times of contenders: seconds per iteration by PE count, draws and limits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jax import Array
from numpy.typing import NDArray

from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import validate_spec
from paradl.kernels.arrays import xp
from paradl.kernels.compiled import compiled, fetch
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.oracle.answer import find_limits, settle_choices
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.oracle.uncertainty import draw_times
from paradl.sweep.answers.numbers import number
from paradl.sweep.engine.resources import keep_programs
from paradl.sweep.questions.hybrid.epochs import COUNT

# Fewest PE counts evaluated at once; counts are padded to powers of two to share programs.
LEAST = 64
# Draws are evaluated for every count up to FEW replicas, then for AN_OCTAVE counts per octave.
# Interpolated times are off by 0.35 % (rms), and at most 6 %, where draws change the algorithm.
FEW, AN_OCTAVE = 16, 8


@dataclass(frozen=True)
class ContenderTimes:
    """Seconds per iteration [draw, count] on 1, 2 ... PEs; the first draw is the expected one.

    error [count]: spread of the oracle's own error. limits [count]: flags. samples: per replica and
    iteration, over all passes.
    """

    seconds: Floats
    error: Floats
    limits: NDArray[np.uint16]
    samples: float

    def draw(self, errors: Floats) -> Floats:
        """Return seconds [draw, count] with the oracle's errors [draw], standard normal numbers.

        Table III has no draws: its times are the same in all.
        """
        drawn: Floats = self.seconds * np.exp(errors[:, None] * self.error)
        return drawn


def build_grid(
    axes: Mapping[str, object], parameters: Mapping[str, object], settings: Mapping[str, object]
) -> Grid:
    """Return the design space of one model on one system, with draws for the machine oracle."""
    spec = validate_spec({"axes": dict(axes), "parameters": dict(parameters), **settings}, "")
    grid = Grid.from_spec(spec, Path())
    misfit = grid.misfit(0, 0)
    if misfit is not None:
        raise InputError(misfit, where="dataset")
    return grid.ask_intervals(COUNT)


def time_strategies(grid: Grid, most: int) -> dict[str, ContenderTimes]:
    """Return times of each strategy on 1, 2 ... `most` PEs, by label."""
    keep_programs()
    labels = grid.labels["strategy"]
    return {label: _time_strategy(grid, position, most) for position, label in enumerate(labels)}


def _time_strategy(grid: Grid, position: int, most: int) -> ContenderTimes:
    def build(counts: Floats) -> Case:
        case = grid.case((0, 0, 0, position), {**grid.axes, "pe": counts})
        assert case is not None  # build_grid has checked that the samples fit
        return case

    counts = np.arange(1.0, max(LEAST, 2 ** (most - 1).bit_length()) + 1)
    case = build(counts)
    expected = settle_choices(replace(case, uncertainty=None))
    times, limits, samples = map(np.asarray, fetch(_time_expected(expected)))
    # Table III has no uncertainty: one draw, without error.
    seconds, error = times[None, :most], np.zeros(most)
    drawn = list_drawn(int(np.max(case.run.group)), most)
    unsure = build(drawn)
    if unsure.uncertainty is not None:
        logs, errors = map(np.asarray, fetch(_time_draws(settle_choices(unsure))))
        seconds = np.concatenate([seconds, seconds * np.exp(interpolate(drawn, logs, most))])
        error = interpolate(drawn, errors, most)
    return ContenderTimes(seconds, error, limits[:most], number(samples))


def list_drawn(group: int, most: int) -> Floats:
    """Return PE counts to draw for: all up to FEW replicas, AN_OCTAVE per octave above."""
    replicas = most // group
    octaves = range(max(0, int(np.log2(replicas / FEW) * AN_OCTAVE)) + 1) if replicas > FEW else ()
    larger = [round(FEW * 2 ** (step / AN_OCTAVE)) for step in octaves]
    return group * np.unique([*range(1, min(FEW, replicas) + 1), *larger, replicas]).astype(float)


def interpolate(counts: Floats, values: Floats, most: int) -> Floats:
    """Interpolate values [..., count] to 1, 2 ... `most` PEs, linearly in the logarithm of p."""
    all_counts = np.arange(1, most + 1)
    position = np.interp(np.log(all_counts), np.log(counts), np.arange(len(counts)))
    left = np.floor(position).astype(np.int64)
    part, right = position - left, np.minimum(left + 1, len(counts) - 1)
    between: Floats = values[..., left] * (1 - part) + values[..., right] * part
    return between


@compiled(numpy=True)
def _time_expected(case: Case) -> tuple[Array, Array, Array]:
    """Return seconds and limits [count], and samples per replica and iteration."""
    count = xp.size(xp.asarray(case.run.p))
    now = time_iteration(case)
    samples = xp.ravel(xp.asarray(case.run.global_batch / case.run.replicas))[-1]
    seconds = _flatten(now.compute + now.communication, count)
    return seconds, _flatten(find_limits(case), count), samples


@compiled(numpy=True)
def _time_draws(case: Case) -> tuple[Array, Array]:
    """Return log ratios of drawn to expected seconds [draw, count], and errors [count]."""
    count = xp.size(xp.asarray(case.run.p))
    now = time_iteration(case)
    expected = _flatten(now.compute + now.communication, count)
    drawn, spread = draw_times(case, beside=True)  # an error of all counts cancels in speed-ups
    return xp.log(xp.reshape(drawn, (len(drawn), -1)) / expected), _flatten(spread, count)


def _flatten(value: object, count: int) -> Array:
    """Return values [count] of an array over PE counts, or of one number."""
    return xp.broadcast_to(xp.ravel(xp.asarray(value)), (count,))
