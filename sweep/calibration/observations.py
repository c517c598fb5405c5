"""Observations: measured runs as arrays, with what the oracle's closed form needs of each.

Layers are reduced once a configuration. All runs then lie along one dimension, so that a single
program answers for all of them, differentiable in the parameters of a machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from grids.entries.strategies import Strategy, parse
from grids.inputs.problem import Problem
from grids.inputs.reduction import reduced
from grids.models.layers import Floats
from grids.reading.errors import InputError, plain, shorten
from kernels.arrays import Cells
from kernels.compute import PE
from kernels.group import GroupWork, slower
from kernels.network import Network
from kernels.run import Options, Run
from sweep.measured.predicted_runs import (
    AS_MEASURED,
    Conditions,
    identify_case,
    name_column,
)
from sweep.measured.runs import PARTS, MeasuredRun

Mask = NDArray[np.bool_]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Inputs:
    """Arguments of `kernels.calibrated`, one run along the last dimension of each."""

    work: GroupWork
    run: Run
    network: Network
    pe: PE

    def slower(self, factors: Cells) -> "Inputs":
        """The same runs, of models that take `factors` [run] times as long on one PE."""
        return replace(self, work=slower(self.work, factors))


@dataclass(frozen=True, eq=False)
class Observations:
    """`profiled`: whether a run's model has a measured time on one PE of this system."""

    system: str
    runs: tuple[MeasuredRun, ...]
    inputs: Inputs
    options: Options
    profiled: Mask

    def __len__(self) -> int:
        return len(self.runs)

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """Of each run."""
        return tuple(parse(each.strategy) for each in self.runs)

    @cached_property
    def seconds(self) -> Floats:
        """[part, run] in the order of PARTS; NaN where nothing was measured, or nothing is sent."""
        found = np.array(
            [[getattr(each.measured, part) or np.nan for each in self.runs] for part in PARTS],
            float,
        )
        found[PARTS.index("comm"), self.inputs.run.p == 1] = np.nan
        return found

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Each model once."""
        return tuple(dict.fromkeys(each.model for each in self.runs))

    @cached_property
    def of_model(self) -> Floats:
        """[model, run]: 1 for the model that ran, else 0."""
        return np.array([[run.model == each for run in self.runs] for each in self.models], float)

    def labels(self, *keys: str) -> list[tuple[Any, ...]]:
        """Each run's values of some columns."""
        return [tuple(getattr(run, key) for key in keys) for run in self.runs]


@dataclass(frozen=True, eq=False)
class _Observed:
    """One configuration; `system` by its name, however it was referred to."""

    inputs: Inputs
    options: Options
    profiled: bool
    system: str


def observe(runs: Sequence[MeasuredRun], system: str) -> Observations:
    """The runs of one system, `system` of those that name none.

    InputError: an unknown name, or a run that cannot be.
    """
    conditions = Conditions(system, "none", AS_MEASURED)
    found: dict[tuple[object, ...], _Observed] = {}
    for run in runs:
        if identify_case(run) not in found:
            found[identify_case(run)] = _observed(run, conditions)
    rows = [found[identify_case(run)] for run in runs]
    _of_one_system(runs, [row.system for row in rows])
    return Observations(
        system=rows[0].system,
        runs=tuple(runs),
        inputs=jax.tree.map(_stacked, *(row.inputs for row in rows)),
        options=rows[0].options,
        profiled=np.array([row.profiled for row in rows]),
    )


def _of_one_system(runs: Sequence[MeasuredRun], systems: list[str]) -> None:
    for run, system in zip(runs, systems, strict=True):
        if system != systems[0]:
            raise InputError(
                f"expected a run on {shorten(systems[0])}, as the first, "
                f"got one on {shorten(system)}",
                where=run.where,
                advice="calibrate each system from a file of its own runs",
            )


def _observed(run: MeasuredRun, conditions: Conditions) -> _Observed:
    with name_column(run):
        grid = conditions.make_case(run).grid()
    problem, workload = grid.problem((0, 0, 0, 0)), grid.workload(0, 0, 0)
    if problem is None or workload is None:
        raise InputError(str(grid.misfit(0, 0)), where=run.where)
    _can_be(run, problem)
    found = reduced(problem, grid.options)
    # Memory is not calibrated; its stages would be as many as a pipeline has.
    work = replace(found.work, activations=np.zeros(1), parameters=np.zeros(1))
    inputs: Inputs = jax.tree.map(_at_its_cell, Inputs(work, found.run, found.network, found.pe))
    return _Observed(inputs, grid.options, workload.seconds is not None, grid.systems[0].name)


def _can_be(run: MeasuredRun, problem: Problem) -> None:
    if problem.choices:
        raise InputError(
            f"expected the group that ran, got {shorten(run.strategy)}",
            where=run.where,
            advice="write its size, such as data+filter:group=4",
        )
    replicas, group = float(np.max(problem.run.p1)), float(np.max(problem.run.p2))
    if replicas * group != run.p:
        raise InputError(
            f"no such run can be: {plain(run.strategy)} on {run.p} PEs",
            where=run.where,
            advice="serial runs on 1 PE, a hybrid on a multiple of its group",
        )


def _at_its_cell(leaf: Floats) -> Floats:
    """Without the dimensions of PEs and batches, of which a run has one."""
    array = np.asarray(leaf, float)
    return array.reshape(array.shape[:-2]) if array.ndim > 1 else array


def _stacked(*leaves: Floats) -> Floats:
    return np.stack(leaves, axis=-1)
