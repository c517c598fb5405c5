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
from grids.inputs.problem import Problem
from grids.inputs.reduction import Reduced, reduced
from grids.models.layers import Floats
from grids.reading.errors import InputError
from kernels import calibrated
from kernels.arrays import Cells
from kernels.calibration import Calibration
from kernels.compiled import compiled
from kernels.run import Options
from kernels.uncertainty import moved_times, own_error
from sweep.engine.evaluate import ask
from sweep.questions.choice import with_group
from sweep.questions.predict import number

DRAWS = 2000

Row = dict[str, Any]


def chance(grid: Grid, first: Row, second: Row) -> float:
    """The probability that `first` takes less time than `second`, rows of `best`."""
    draw = np.random.default_rng(0).standard_normal
    problems = [_problem(grid, row) for row in (first, second)]
    doubts = [problem.doubt for problem in problems]
    assert doubts[0] is not None  # the caller's check: the grid is calibrated
    parameters, serial = draw((DRAWS, len(doubts[0].directions))), draw(DRAWS)
    with jax.enable_x64(True):
        times = [
            _drawn(reduced(each, grid.options), parameters, serial, options=grid.options)
            for each in problems
        ]
        (one, error), (other, error_of_other) = times
        apart = jnp.log(other / one) / jnp.hypot(error, error_of_other)
        return float(jnp.mean(norm.cdf(apart)))


def _problem(grid: Grid, row: Row) -> Problem:
    """The one cell of a row, with the group that it was answered for."""
    model, dataset, system, strategy = (_position(grid, label, row[label]) for label in LABELS)
    axes = {name: np.array([row[name]], float) for name in grid.axes}
    index = (model, dataset, system, strategy)
    problem = grid.problem(index, axes)
    assert problem is not None  # it is one of the cube's
    if problem.choices:
        problem = with_group(grid, index, number(ask(problem, grid.options).group), axes)
        assert problem is not None
    return problem


def _position(grid: Grid, dim: str, label: str) -> int:
    if label not in grid.labels[dim]:
        raise InputError(
            f"{label!r} is no {dim} of the spec in the Dataset's attributes",
            advice="ask each cube by itself",
        )
    return grid.labels[dim].index(label)


@compiled("options")
def _drawn(
    given: Reduced, parameters: Floats, serial: Floats, *, options: Options
) -> tuple[Array, Array]:
    """A sample's time for each draw [draw], and the spread of the model's own error."""
    known, doubt = given.known, given.doubt
    assert known is not None  # as above
    assert doubt is not None

    def time(at: Array, slower: Array) -> Array:
        offsets = Calibration(*jnp.tensordot(at, jnp.asarray(doubt.directions), axes=1))
        compute, communication = moved_times(
            given.work,
            given.run,
            given.network,
            given.pe,
            known,
            options,
            offsets,
            slower * doubt.serial_time,
        )
        return _only(compute + communication) / _only(given.run.global_batch)

    times = jax.vmap(time)(jnp.asarray(parameters), jnp.asarray(serial))
    terms = calibrated.iteration_terms(
        given.work, given.run, given.network, given.pe, known, options
    )
    return times, _only(own_error(terms, given.work, given.run, doubt))


def _only(cells: Cells) -> Array:
    """The one cell, without dimensions."""
    return jnp.reshape(jnp.asarray(cells), ())
