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

from grids.entries.strategies import Strategy, parse_strategy
from grids.models.layers import Floats
from grids.reading.errors import InputError, format_text, shorten
from kernels.arrays import Cells
from kernels.case import Case
from kernels.group import slower
from sweep.measured.predicted_runs import AS_MEASURED, Conditions, identify_case, name_column
from sweep.measured.runs import PARTS, MeasuredRun

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Observations:
    """Measured runs, and the case of them all, one run along the last dimension of each part.

    profiled: whether a run's model has a measured time on one PE of this system.
    """

    system: str
    runs: tuple[MeasuredRun, ...]
    case: Case
    profiled: Mask

    def __len__(self) -> int:
        return len(self.runs)

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """Each run's strategy."""
        return tuple(parse_strategy(each.strategy) for each in self.runs)

    @cached_property
    def seconds(self) -> Floats:
        """[part, run] in the order of PARTS; NaN where nothing was measured, or nothing is sent."""
        # A time of 0 s, which has no logarithm, counts as not measured.
        seconds = np.array(
            [[getattr(each.measured, part) or np.nan for each in self.runs] for part in PARTS],
            float,
        )
        # One PE sends nothing, whatever was booked as communication.
        seconds[PARTS.index("comm"), np.equal(self.case.run.p, 1)] = np.nan
        return seconds

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

    case: Case
    profiled: bool
    system: str


def observe(runs: Sequence[MeasuredRun], system: str) -> Observations:
    """The runs of one system, `system` of those that name none.

    InputError: an unknown name, or a run that cannot be.
    """
    # What is fitted are the terms that Table III leaves out.
    conditions = Conditions(system, "none", {**AS_MEASURED, "oracle": "paper"})
    observed: dict[tuple[object, ...], _Observed] = {}
    for run in runs:
        if identify_case(run) not in observed:
            observed[identify_case(run)] = _observe_one(run, conditions)
    rows = [observed[identify_case(run)] for run in runs]
    _expect_one_system(runs, [row.system for row in rows])
    return Observations(
        system=rows[0].system,
        runs=tuple(runs),
        case=jax.tree.map(_stack, *(row.case for row in rows)),
        profiled=np.array([row.profiled for row in rows]),
    )


def slow_down(case: Case, factors: Cells) -> Case:
    """The same runs, of models that take `factors` [run] times as long on one PE."""
    return replace(case, work=slower(case.work, factors))


def _expect_one_system(runs: Sequence[MeasuredRun], systems: list[str]) -> None:
    for run, system in zip(runs, systems, strict=True):
        if system != systems[0]:
            raise InputError(
                f"expected a run on {shorten(systems[0])}, as the first, "
                f"got one on {shorten(system)}",
                where=run.where,
                advice="calibrate each system from a file of its own runs",
            )


def _observe_one(run: MeasuredRun, conditions: Conditions) -> _Observed:
    with name_column(run):
        grid = conditions.make_case(run).grid()
    case, workload = grid.case((0, 0, 0, 0)), grid.workload(0, 0, 0)
    if case is None or workload is None:
        raise InputError(str(grid.misfit(0, 0)), where=run.where)
    _expect_possible(run, case)
    # Memory is not calibrated; its stages would be as many as a pipeline has.
    work = replace(case.work, activations=np.zeros(1), parameters=np.zeros(1))
    of_run: Case = jax.tree.map(_drop_cells, replace(case, work=work))
    return _Observed(of_run, workload.seconds is not None, grid.systems[0].name)


def _expect_possible(run: MeasuredRun, case: Case) -> None:
    if case.choices:
        raise InputError(
            f"expected the {' and '.join(case.choices)} that ran, got {shorten(run.strategy)}",
            where=run.where,
            advice=f"write a number, such as {case.choices[0]}=4",
        )
    replicas, group = float(np.max(case.run.p1)), float(np.max(case.run.p2))
    if replicas * group != run.p:
        raise InputError(
            f"no such run can be: {format_text(run.strategy)} on {run.p} PEs",
            where=run.where,
            advice="serial runs on 1 PE, a hybrid on a multiple of its group",
        )


def _drop_cells(leaf: Floats) -> Floats:
    """The values without the dimensions of PEs and batches, of which a run has one."""
    array = np.asarray(leaf)
    # Its last two dimensions are PEs and batches, of size 1 each.
    return array.reshape(array.shape[:-2]) if array.ndim > 1 else array


def _stack(*leaves: Floats) -> Floats:
    return np.stack(leaves, axis=-1)
