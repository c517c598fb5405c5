"""Chances: how probable it is that one configuration is faster than another.

Both configurations are evaluated with the same draws of what is not known of the machine: what
slows both alike does not count. The model's own errors are independent of each other.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.stats import norm
from numpy.typing import NDArray

from grids.grid import Grid
from kernels.arrays import Cells
from kernels.case import Case
from kernels.compiled import compiled
from kernels.convergence import spread_ratio
from kernels.statistics import Objective
from kernels.uncertainty import draw_times
from sweep.questions.plain_numbers import number
from sweep.questions.row_cases import build_row_case

Row = dict[str, Any]


def find_chance(grid: Grid, first: Row, second: Row, objective: Objective = "epoch_time") -> float:
    """The probability that `first` takes less time than `second`, rows of `best`.

    Of an epoch, or to the target.
    """
    cases = [build_row_case(grid.ask_intervals(), row) for row in (first, second)]
    unsure = 0.0
    if objective == "epoch_time":
        cases = [replace(each, training=None) for each in cases]
    else:
        law = grid.convergences[first["model"], first["dataset"]].law
        unsure = spread_ratio(law, *(number(each.run.global_batch) for each in cases))
    first_times, second_times = map(_draw_times, cases)
    return float(_find_chance(first_times, second_times, np.asarray(unsure)))


def draw_seconds(grid: Grid, row: Row, objective: Objective) -> NDArray[np.float64]:
    """What a row of `best` takes in each draw [s]: of an epoch, or to the target."""
    case = build_row_case(grid.ask_intervals(), row)
    if objective == "epoch_time":
        case = replace(case, training=None)
    seconds, _ = _draw_times(case)
    return np.asarray(seconds) * number(case.run.samples)


@compiled()
def _draw_times(case: Case) -> tuple[Array, Array]:
    """A sample's time for each draw [draw], in all epochs, and the spread of the model's error."""
    times, error = draw_times(case)
    samples = jnp.reshape(jnp.asarray(case.run.global_batch), ())
    epochs = 1.0 if case.training is None else case.training.count_epochs(samples)
    seconds = jnp.ravel(times) / samples * jnp.ravel(jnp.asarray(epochs))
    return seconds, jnp.reshape(error, ())


@compiled()
def _find_chance(first: tuple[Array, Array], second: tuple[Array, Array], unsure: Cells) -> Array:
    """The mean over all draws of the probability that the first is faster.

    unsure: spread of the ratio of their epochs.
    """
    (time, error), (other, error_of_other) = first, second
    apart = jnp.log(other / time) / jnp.hypot(jnp.hypot(error, error_of_other), unsure)
    return jnp.mean(norm.cdf(apart))
