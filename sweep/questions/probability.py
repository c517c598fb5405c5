"""Chances: how probable it is that one configuration is faster than another.

The posterior of a calibration is drawn from, and both configurations are evaluated with the same
draws: what slows both alike does not count. The model's own errors are independent of each other.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.stats import norm

from grids.grid import LABELS, Grid
from grids.models.layers import Floats
from grids.reading.errors import InputError
from kernels import calibrated
from kernels.arrays import Cells
from kernels.calibration import Calibration
from kernels.case import Case
from kernels.compiled import compiled
from kernels.oracle import settle_choices
from kernels.uncertainty import move_times, own_error

# The standard error of a probability is then at most 0.5 / sqrt(2000) = 0.011.
DRAWS = 2000

Row = dict[str, Any]


def find_chance(grid: Grid, first: Row, second: Row) -> float:
    """The probability that `first` takes less time than `second`, rows of `best`."""
    # A fixed seed: the same cube has the same chances, whenever it is asked.
    draw = np.random.default_rng(0).standard_normal
    cases = [settle_choices(_build_case(grid, row)) for row in (first, second)]
    uncertainty = cases[0].uncertainty
    assert uncertainty is not None  # the caller's check: the grid is calibrated
    parameters, serial = draw((DRAWS, len(uncertainty.directions))), draw(DRAWS)
    return float(_find_chance(*(_draw_times(each, parameters, serial) for each in cases)))


def _build_case(grid: Grid, row: Row) -> Case:
    """The one cell of a row."""
    model, dataset, system, strategy = (_find_position(grid, label, row[label]) for label in LABELS)
    axes = {name: np.array([row[name]], float) for name in grid.axes}
    case = grid.case((model, dataset, system, strategy), axes)
    assert case is not None  # it is one of the cube's
    return case


def _find_position(grid: Grid, dim: str, label: str) -> int:
    if label not in grid.labels[dim]:
        raise InputError(
            f"{label!r} is no {dim} of the spec in the Dataset's attributes",
            advice="ask each cube by itself",
        )
    return grid.labels[dim].index(label)


@compiled()
def _draw_times(case: Case, parameters: Floats, serial: Floats) -> tuple[Array, Array]:
    """A sample's time for each draw [draw], and the spread of the model's own error."""
    uncertainty = case.uncertainty
    assert uncertainty is not None  # as above

    def time(at: Array, slower: Array) -> Array:
        offsets = Calibration(*jnp.tensordot(at, jnp.asarray(uncertainty.directions), axes=1))
        compute, communication = move_times(case, offsets, slower * uncertainty.serial_time)
        return _take_only(compute + communication) / _take_only(case.run.global_batch)

    times = jax.vmap(time)(jnp.asarray(parameters), jnp.asarray(serial))
    return times, _take_only(own_error(calibrated.iteration_terms(case), case))


@compiled()
def _find_chance(first: tuple[Array, Array], second: tuple[Array, Array]) -> Array:
    """The mean over all draws of the probability that the first is faster."""
    (time, error), (other, error_of_other) = first, second
    apart = jnp.log(other / time) / jnp.hypot(error, error_of_other)
    return jnp.mean(norm.cdf(apart))


def _take_only(cells: Cells) -> Array:
    """The one cell, without dimensions."""
    return jnp.reshape(jnp.asarray(cells), ())
