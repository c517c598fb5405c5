"""Evaluate: the oracle's answers for a block of cells, as arrays ready to store.

Computed in float64, which holds 1e-5 with room to spare, and kept in float32.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from grids.grid import Grid, Index
from grids.models.layers import Floats
from grids.problem import Problem
from grids.strategies import Strategy
from kernels import (
    Answer,
    Bounds,
    Cells,
    GroupWork,
    Line,
    Network,
    Options,
    Run,
    Summary,
    Terms,
    answer,
    best_group,
    compiled,
    reduce_layers,
    summarise,
)
from sweep.variables import EFFICIENCY, Arrays, dtype


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Reduced:
    """A problem whose layers are reduced: what the closed-form stage needs of it."""

    work: GroupWork
    bounds: Bounds
    run: Run
    network: Network
    memory_capacity: Cells


def evaluate(
    grid: Grid,
    index: Index,
    axes: Mapping[str, Floats] | None = None,
    outputs: tuple[str, ...] | None = None,
    strategy: Strategy | None = None,
) -> Arrays | None:
    """Outputs for one (model, dataset, system, strategy) over `axes`.

    All of the grid's outputs and axes, and the index' strategy, unless others are given. Each array
    has all numeric dims, of size 1 where it does not vary: whoever fills a block spreads it, at the
    speed of memory. None where the dataset's samples do not fit the model.
    """
    problem = grid.problem(index, axes, strategy)
    if problem is None:
        return None
    names = grid.spec.outputs if outputs is None else outputs
    with jax.enable_x64(True):
        found = _stored(
            _reduced(problem, grid.options),
            choices=problem.choices,
            options=grid.options,
            names=names,
        )
        return {name: np.asarray(value) for name, value in found.items()}


def evaluate_and_summarise(
    grid: Grid, index: Index, axes: Mapping[str, Floats], serial_time: Floats
) -> tuple[Arrays, Arrays] | None:
    """The grid's outputs, as `evaluate`, and in the same pass their summary over the PE counts.

    serial_time [numeric dims but pe]: an epoch on one PE. The summary's arrays, by the names of
    `kernels.Summary`, have the numeric dims but pe; limits come last in the counts.
    """
    problem = grid.problem(index, axes)
    if problem is None:
        return None
    with jax.enable_x64(True):
        found, summary = _stored_and_summarised(
            _reduced(problem, grid.options),
            jnp.asarray(serial_time, jnp.float64)[None],
            choices=problem.choices,
            options=grid.options,
            names=grid.spec.outputs,
        )
        outputs = {name: np.asarray(value) for name, value in found.items()}
        return outputs, summary_arrays(summary)


def summary_arrays(summary: Summary) -> Arrays:
    """As a store keeps it: limits, which lead in the kernels, come last, as a cube's dims do."""
    arrays = {name: np.asarray(value) for name, value in vars(summary).items()}
    return arrays | {"counts": np.moveaxis(arrays["counts"], 0, -1)}


def ask(problem: Problem, options: Options) -> Answer:
    """The oracle's whole answer, in float64."""
    with jax.enable_x64(True):
        found = _answer(_reduced(problem, options), choices=problem.choices, options=options)
        arrays: Answer = jax.tree.map(np.asarray, found)
        return arrays


def group_work(problem: Problem, options: Options) -> GroupWork:
    """The work of a group's busiest PE."""
    with jax.enable_x64(True):
        return reduce_layers(
            problem.layers,
            problem.pe,
            problem.placement,
            problem.run.p2,
            problem.run.batch,
            problem.run.delta,
            group=problem.group,
            optimizer=options.optimizer,
            algorithm=options.algorithm,
        )


def _reduced(problem: Problem, options: Options) -> Reduced:
    """All strategies in the same shapes, so that one compiled program serves them all."""
    pe = np.shape(problem.run.p)

    def uniform(leaf: Any) -> Any:
        return np.broadcast_to(leaf, np.broadcast_shapes(np.shape(leaf), pe))

    work = group_work(problem, options)
    return Reduced(
        work=jax.tree.map(uniform, work),
        bounds=jax.tree.map(uniform, problem.bounds),
        run=jax.tree.map(uniform, problem.run),
        network=problem.network,
        memory_capacity=problem.pe.memory_capacity,
    )


@compiled("choices", "options")
def _answer(reduced: Reduced, *, choices: bool, options: Options) -> Answer:
    found = answer(
        reduced.work,
        reduced.bounds,
        reduced.run,
        reduced.network,
        reduced.memory_capacity,
        options,
    )
    return best_group(found) if choices else found


@compiled("choices", "options", "names")
def _stored(
    reduced: Reduced,
    *,
    choices: bool,
    options: Options,
    names: tuple[str, ...],
) -> dict[str, Array]:
    """What a block stores, and no more: the compiler drops what is not asked for."""
    return _outputs(_answer(reduced, choices=choices, options=options), names)


@compiled("choices", "options", "names")
def _stored_and_summarised(
    reduced: Reduced,
    serial_time: Array,
    *,
    choices: bool,
    options: Options,
    names: tuple[str, ...],
) -> tuple[dict[str, Array], Summary]:
    found = _answer(reduced, choices=choices, options=options)
    p = jnp.asarray(reduced.run.p)
    line = Line(
        p=p[0] if choices else p,  # the choices of a group lead
        comp_time=found.terms.compute,
        comm_time=found.terms.communication,
        memory=found.memory,
        limit=found.limit,
        serial_time=serial_time,
    )
    return _outputs(found, names), summarise(line, EFFICIENCY)


def _outputs(found: Answer, names: tuple[str, ...]) -> dict[str, Array]:
    return {name: jnp.asarray(output(found, name)).astype(dtype(name)) for name in names}


def output(found: Answer, name: str) -> Cells:
    """One of the cube's variables out of an answer."""
    match name:
        case "comp_time":
            return found.terms.compute
        case "comm_time":
            return found.terms.communication
        case "group_size":
            return found.group
        case "memory" | "limit" | "replicas":
            value: Cells = getattr(found, name)
            return value
    assert name in {each.name for each in fields(Terms)}, name
    term: Cells = getattr(found.terms, name)
    return term
