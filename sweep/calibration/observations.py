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

from grids.errors import InputError
from grids.models.layers import Floats
from grids.problem import Problem
from grids.reduction import reduced
from grids.strategies import Strategy, parse
from kernels.arrays import Cells
from kernels.compute import PE
from kernels.group import GroupWork
from kernels.network import Network
from kernels.run import Options, Run
from sweep.measured import PARTS, MeasuredRun
from sweep.questions.cases import AS_MEASURED, Conditions

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
        work = self.work
        slowed = replace(
            work,
            forward_backward=work.forward_backward * factors,
            serial=work.serial * factors,
            convolution=work.convolution * factors,
        )
        return replace(self, work=slowed)


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


def observe(runs: Sequence[MeasuredRun], system: str) -> Observations:
    """The runs of one system. InputError: an unknown name, or a run that cannot be."""
    conditions = Conditions(system, "none", AS_MEASURED)
    found: dict[tuple[object, ...], tuple[Inputs, bool]] = {}
    for run in runs:
        _of_system(run, system)
        if _configured(run) not in found:
            found[_configured(run)] = _inputs(run, conditions)
    rows = [found[_configured(run)] for run in runs]
    stacked: Inputs = jax.tree.map(_stacked, *(inputs for inputs, _ in rows))
    options = conditions.configuration(runs[0]).grid().options
    profiled = np.array([known for _, known in rows])
    return Observations(system, tuple(runs), stacked, options, profiled)


def _configured(run: MeasuredRun) -> tuple[object, ...]:
    return (*run.series, run.p)


def _of_system(run: MeasuredRun, system: str) -> None:
    if run.system not in (None, system):
        raise InputError(
            f"expected runs on {system!r}, got one on {run.system!r}",
            where=run.where,
            advice="calibrate each system from a file of its own runs",
        )


def _inputs(run: MeasuredRun, conditions: Conditions) -> tuple[Inputs, bool]:
    """What the formulas need of one run, and whether its model has a profile."""
    grid = conditions.configuration(run).grid()
    problem = grid.problem((0, 0, 0, 0))
    if problem is None:
        raise InputError(str(grid.misfit(0, 0)), where=run.where)
    _can_be(run, problem)
    found = reduced(problem, grid.options)
    workload = grid.workload(0, 0, 0)
    assert workload is not None
    # Memory is not calibrated; its stages would be as many as a pipeline has.
    work = replace(found.work, activations=np.zeros(1), parameters=np.zeros(1))
    inputs: Inputs = jax.tree.map(_at_its_cell, Inputs(work, found.run, found.network, found.pe))
    return inputs, workload.seconds is not None


def _can_be(run: MeasuredRun, problem: Problem) -> None:
    if problem.choices:
        raise InputError(
            f"expected the group that ran, got {run.strategy!r}",
            where=run.where,
            advice="write its size, such as data+filter:group=4",
        )
    replicas, group = float(np.max(problem.run.p1)), float(np.max(problem.run.p2))
    if replicas * group != run.p:
        raise InputError(
            f"no such run can be: {run.strategy} on {run.p} PEs",
            where=run.where,
            advice=f"p must be a multiple of its group of {group:g}",
        )


def _at_its_cell(leaf: Floats) -> Floats:
    """Without the dimensions of PEs and batches, of which a run has one."""
    array = np.asarray(leaf, float)
    return array.reshape(array.shape[:-2]) if array.ndim > 1 else array


def _stacked(*leaves: Floats) -> Floats:
    return np.stack(leaves, axis=-1)
