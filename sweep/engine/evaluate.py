"""Evaluate: the oracle's answers for a block of cells, as arrays ready to store.

Computed in double precision and kept in single: rounded once, an answer is the same however a cube
is cut into blocks, and whatever order of operations the compiler then finds best.
"""

from collections.abc import Mapping
from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from grids.entries.strategies import Strategy
from grids.grid import Grid, Index
from grids.inputs.problem import Problem
from grids.inputs.reduction import Reduced, reduced
from grids.models.layers import Floats
from grids.spec import TIMES
from kernels.arrays import Cells
from kernels.compiled import compiled
from kernels.oracle import Answer, answer, best_group
from kernels.run import Options, Terms
from kernels.uncertainty import quantile
from sweep.cube.variables import VARIABLES, Arrays


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
    problem = grid.problem(index, axes, strategy)
    if problem is None:
        return None
    with jax.enable_x64(True):
        found = _stored(
            reduced(problem, grid.options),
            choices=problem.choices,
            options=grid.options,
            names=grid.spec.outputs if outputs is None else outputs,
        )
        return {name: np.asarray(value) for name, value in found.items()}


def ask(problem: Problem, options: Options) -> Answer:
    """The oracle's whole answer, in double precision."""
    with jax.enable_x64(True):
        found = answered(reduced(problem, options), choices=problem.choices, options=options)
        arrays: Answer = jax.tree.map(np.asarray, found)
        return arrays


@compiled("choices", "options")
def answered(given: Reduced, *, choices: bool, options: Options) -> Answer:
    """The closed form over all cells; of several group sizes, the best."""
    found = answer(
        given.work,
        given.bounds,
        given.run,
        given.network,
        given.pe,
        options,
        given.known,
        given.doubt,
        given.ahead,
    )
    return best_group(found) if choices else found


@compiled("choices", "options", "names")
def _stored(
    given: Reduced, *, choices: bool, options: Options, names: tuple[str, ...]
) -> dict[str, Array]:
    """What a block stores, and no more: the compiler drops what is not asked for."""
    found = answered(given, choices=choices, options=options)
    return {name: jnp.asarray(output(found, name)).astype(VARIABLES[name].dtype) for name in names}


def _quantile(found: Answer, time: str, percent: int) -> Cells:
    """A percentile of one of an epoch's times."""
    assert found.spread is not None  # the spec's check: only a calibrated oracle has any
    of = {
        "comp_time": (found.compute, found.spread.compute),
        "comm_time": (found.communication, found.spread.communication),
        "epoch_time": (found.compute + found.communication, found.spread.total),
    }
    return quantile(*of[time], percent)


def output(found: Answer, name: str) -> Cells:
    """One of the cube's variables out of an answer."""
    time, _, percent = name.rpartition("_p")
    if time in TIMES:
        return _quantile(found, time, int(percent))
    match name:
        case "comp_time":
            return found.compute
        case "comm_time":
            return found.communication
        case "group_size":
            return found.group
        case "memory" | "limit" | "replicas":
            value: Cells = getattr(found, name)
            return value
    assert name in {each.name for each in fields(Terms)}, name
    term: Cells = getattr(found.terms, name)
    return term
