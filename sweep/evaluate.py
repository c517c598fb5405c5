"""Evaluate: the oracle's answers for a block of cells, as arrays ready to store.

Computed in float64, which holds 1e-5 with room to spare, and kept in float32.
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from grids import Floats, Grid, Index, Problem
from kernels import (
    Answer,
    Cells,
    GroupWork,
    Network,
    Options,
    Placement,
    Run,
    Terms,
    answer,
    best_group,
    reduce_layers,
)

Arrays = dict[str, NDArray[np.generic]]

FLOAT = np.dtype("float32")
FLAGS = np.dtype("uint8")


def dtype(output: str) -> np.dtype[np.generic]:
    """How an output is stored."""
    return FLAGS if output == "limit" else FLOAT


def evaluate(
    grid: Grid, index: Index, axes: Mapping[str, Floats] | None = None
) -> Arrays | None:
    """The grid's outputs for one (model, dataset, system, strategy), over `axes` [numeric dims].

    None where the dataset's samples do not fit the model.
    """
    axes = axes or grid.axes
    problem = grid.problem(index, axes)
    if problem is None:
        return None
    shape = tuple(each.size for each in axes.values())
    with jax.enable_x64(True):
        found = _stored(
            _work(problem, grid.options),
            *_cells(problem),
            choices=problem.choices,
            options=grid.options,
            names=grid.spec.outputs,
            shape=shape,
        )
        return {name: np.asarray(value) for name, value in found.items()}


def ask(problem: Problem, options: Options) -> Answer:
    """The oracle's whole answer, in float64."""
    with jax.enable_x64(True):
        found = _answer(
            _work(problem, options), *_cells(problem), choices=problem.choices, options=options
        )
        return jax.tree.map(np.asarray, found)


def _work(problem: Problem, options: Options) -> GroupWork:
    return reduce_layers(
        problem.layers,
        problem.pe,
        problem.placement,
        problem.run.p2,
        problem.run.delta,
        group=problem.group,
        optimizer=options.optimizer,
        algorithm=options.algorithm,
    )


def _cells(problem: Problem) -> tuple[Placement, Run, Network, Cells]:
    return problem.placement, problem.run, problem.network, problem.pe.memory_capacity


@partial(jax.jit, static_argnames=("choices", "options"))
def _answer(
    work: GroupWork,
    placement: Placement,
    run: Run,
    network: Network,
    memory_capacity: Cells,
    *,
    choices: bool,
    options: Options,
) -> Answer:
    found = answer(work, placement, run, network, memory_capacity, options)
    return best_group(found) if choices else found


@partial(jax.jit, static_argnames=("choices", "options", "names", "shape"))
def _stored(
    work: GroupWork,
    placement: Placement,
    run: Run,
    network: Network,
    memory_capacity: Cells,
    *,
    choices: bool,
    options: Options,
    names: tuple[str, ...],
    shape: tuple[int, ...],
) -> dict[str, Array]:
    """What a block stores, and no more: the compiler drops what is not asked for."""
    found = _answer(
        work, placement, run, network, memory_capacity, choices=choices, options=options
    )
    return {
        name: jnp.broadcast_to(output(found, name), shape).astype(dtype(name)) for name in names
    }


def output(found: Answer, name: str) -> Array:
    """One of the cube's variables out of an answer."""
    match name:
        case "comp_time":
            return found.terms.compute
        case "comm_time":
            return found.terms.communication
        case "memory" | "limit" | "replicas":
            return jnp.asarray(getattr(found, name))
        case "group_size":
            return jnp.asarray(found.group)
    assert name in {each.name for each in fields(Terms)}, name
    return jnp.asarray(getattr(found.terms, name))
