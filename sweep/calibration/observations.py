"""Observations: measured runs as arrays, with all that the oracle's formulas need.

Layers are reduced once per configuration. All runs then lie along one dimension, so that a single
program predicts them all, and is differentiable in the parameters of a machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from paradl.grids.design_space import ONLY
from paradl.grids.entries.calibration import LogPrior, list_priors
from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.entries.systems import System
from paradl.grids.models.architecture import Architecture
from paradl.grids.reading.errors import InputError, format_count, format_text, shorten
from paradl.kernels.arrays import Cells
from paradl.kernels.configuration.case import Case
from paradl.kernels.derivatives.density import LayerWork
from paradl.kernels.names.arrays import Floats
from paradl.kernels.work.group import GroupWork
from paradl.sweep.measured.predicted_runs import Conditions, identify_case, name_column
from paradl.sweep.measured.runs import PARTS, MeasuredRun


def find_layer_work(run: MeasuredRun, conditions: Conditions) -> LayerWork:
    """Return the run's layer work, and that of the whole network in the batch of its profile."""
    work = _reduce_roofline(run, conditions)
    serial = _reduce_roofline(replace(run, strategy="serial", p=1, memory=None), conditions)
    workload = conditions.make_case(run).grid().workload(*ONLY[:3])
    assert workload is not None  # the run has a case
    batch = float(workload.measured_batch)
    seconds = 0.0 if workload.seconds is None else float(workload.seconds.sum()) * batch
    return LayerWork(
        sample=_take_only(work.forward_backward),
        fixed=_take_only(work.fixed),
        whole=batch * _take_only(serial.forward_backward) + _take_only(serial.fixed),
        launches=_take_only(serial.launches),
        measured=np.asarray(seconds),
    )


def _reduce_roofline(run: MeasuredRun, conditions: Conditions) -> GroupWork:
    configuration = conditions.make_case(run)
    settings = {**(configuration.settings or {}), "times": "roofline"}
    case = replace(configuration, settings=settings).grid().case(ONLY)
    assert isinstance(case, Case)  # observations are of configurations that exist
    return case.machine_work


def _take_only(values: Cells) -> Floats:
    return np.asarray(values, float).reshape(())


Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Observations:
    """Measured runs, and their joint case, with runs along the last dimension of every array.

    layers: the part of the work that depends on how long hosts take to launch layers. profiled
    [run]: whether the model has a measured time on one PE of this system. multipliers: each run's
    kinds of layers. architectures: digests of the networks by model name; `runs` have these names
    even if the file names a path.
    """

    system: System
    runs: tuple[MeasuredRun, ...]
    case: Case
    layers: LayerWork
    profiled: Mask
    multipliers: tuple[tuple[str, ...], ...]
    architectures: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def priors(self) -> dict[str, LogPrior]:
        """Prior of each parameter of this machine."""
        system = self.system
        return list_priors(system.precision, system.software, system.staging is not None)

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """Strategy of each run."""
        return tuple(parse_strategy(run.strategy) for run in self.runs)

    @cached_property
    def seconds(self) -> Floats:
        """Seconds [part, run] in the order of PARTS; NaN if unmeasured, or nothing is sent."""
        # A time of 0 s has no logarithm, and counts as unmeasured.
        seconds = np.array(
            [[getattr(run.measured, part) or np.nan for run in self.runs] for part in PARTS], float
        )
        # One PE sends nothing, whatever was logged as communication.
        seconds[PARTS.index("comm"), np.equal(self.case.run.p, 1)] = np.nan
        return seconds

    @cached_property
    def counted(self) -> Mask:
        """Mask of seconds to fit [part, run]: totals only if a part was not measured."""
        measured = np.isfinite(self.seconds)
        total, *parts = (PARTS.index(part) for part in ("total", "comp", "comm"))
        measured[total] &= ~measured[parts].all(axis=0)
        return measured

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Each model once."""
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @cached_property
    def of_model(self) -> Floats:
        """1 for the model that ran, else 0 [model, run]."""
        return np.array([[run.model == model for run in self.runs] for model in self.models], float)

    def labels(self, *keys: str) -> list[tuple[Any, ...]]:
        """Return each run's values of these columns; `base`: its strategy without settings."""
        bases = [strategy.base for strategy in self.strategies]
        return [
            tuple(base if key == "base" else getattr(run, key) for key in keys)
            for run, base in zip(self.runs, bases, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Configuration:
    """A configuration that ran, with its entries of the catalogue."""

    case: Case
    layers: LayerWork
    profiled: bool
    multipliers: tuple[str, ...]
    system: System
    model: Architecture
    dataset: str


def observe(runs: Sequence[MeasuredRun], system: str | None) -> Observations:
    """Return the runs of one system as arrays. system: of runs that name none.

    InputError: an unknown name, several systems, or a run that cannot exist.
    """
    conditions = Conditions(system, "none", {"oracle": "machine"})
    known: dict[tuple[object, ...], _Configuration] = {}
    for run in runs:
        if identify_case(run) not in known:
            known[identify_case(run)] = _evaluate_run(run, conditions)
    rows = [known[identify_case(run)] for run in runs]
    expect_one_system(runs, [row.system.name for row in rows])
    _expect_one_network(runs, [row.model for row in rows])
    return Observations(
        system=rows[0].system,
        # The file may name a model by its path; predictions use its name.
        runs=tuple(
            replace(run, model=row.model.name, dataset=row.dataset)
            for run, row in zip(runs, rows, strict=True)
        ),
        case=jax.tree.map(_stack, *_level_cases([row.case for row in rows])),
        layers=jax.tree.map(_stack, *(row.layers for row in rows)),
        profiled=np.array([row.profiled for row in rows]),
        multipliers=tuple(row.multipliers for row in rows),
        architectures={row.model.name: row.model.fingerprint for row in rows},
    )


def expect_one_system(runs: Sequence[MeasuredRun], systems: Sequence[str]) -> None:
    """Raise InputError if a run's system, by its name, is another than the first's."""
    for run, system in zip(runs, systems, strict=True):
        if system != systems[0]:
            what = f"expected a run on {shorten(systems[0])}, as the first, got {shorten(system)}"
            raise InputError(what, where=run.where)


def _expect_one_network(runs: Sequence[MeasuredRun], models: Sequence[Architecture]) -> None:
    fingerprints: dict[str, str] = {}
    for run, model in zip(runs, models, strict=True):
        if fingerprints.setdefault(model.name, model.fingerprint) != model.fingerprint:
            what = f"not the network that is named {shorten(model.name)} in a row above"
            raise InputError(what, where=f"{run.where}: model")


def _evaluate_run(run: MeasuredRun, conditions: Conditions) -> _Configuration:
    with name_column(run):
        grid = conditions.make_case(run).grid()
    case, workload = grid.case(ONLY), grid.workload(*ONLY[:3])
    if case is None or workload is None:
        raise InputError(str(grid.misfit(0, 0)), where=run.where)
    assert isinstance(case, Case)  # runs of layouts are observed elsewhere
    _expect_possible(run, case)
    of_run: Case = jax.tree.map(_drop_cells, case)
    return _Configuration(
        case=of_run,
        layers=find_layer_work(run, conditions),
        profiled=workload.seconds is not None,
        multipliers=workload.table.multipliers,
        system=grid.systems[0],
        model=grid.models[0],
        dataset=grid.datasets[0].name,
    )


def _level_cases(cases: Sequence[Case]) -> list[Case]:
    """Give all cases the same parallelisms, absent ones with degree 1, so that they can be stacked.

    Memory, which has one array per pipeline stage, is dropped, since it is not calibrated.
    """
    every = {name: sent for case in cases for name, sent in case.machine_work.sent.items()}
    absent = {name: jax.tree.map(np.zeros_like, sent) for name, sent in every.items()}
    ones = dict.fromkeys(every, np.ones_like(cases[0].run.group))
    return [
        replace(
            case,
            work=replace(
                case.machine_work,
                activations=np.zeros(1),
                parameters=np.zeros(1),
                row_states=None,
                sent=absent | dict(case.machine_work.sent),
            ),
            run=replace(case.run, degrees=ones | dict(case.run.degrees)),
        )
        for case in cases
    ]


def _expect_possible(run: MeasuredRun, case: Case) -> None:
    if case.choices:
        what = f"expected the {' and '.join(case.choices)} that ran, got {shorten(run.strategy)}"
        raise InputError(what, where=run.where)
    replicas, group = float(np.max(case.run.replicas)), float(np.max(case.run.group))
    if replicas * group != run.p:
        raise InputError(
            f"impossible run: {format_text(run.strategy)} on {format_count(run.p, 'PE')}",
            where=run.where,
            advice="serial runs on 1 PE, a hybrid on a multiple of its group",
        )


def _drop_cells(leaf: Floats) -> Floats:
    array = np.asarray(leaf)
    # The last two dimensions are PEs and batches, of which a run has one each.
    return array.reshape(array.shape[:-2]) if array.ndim > 1 else array


def _stack(*leaves: Floats) -> Floats:
    return np.stack(leaves, axis=-1)
