"""Calibrate layouts of transformers: parameters of a stack on a machine, and a factor on all times.

The rates of layouts hold for any machine and stack. Runs of one stack on one machine share how far
its parameters are from their priors, and an error of all times; no run gets a number for itself.
The logarithm of a time is taken to be linear in those of parameters, so that the most probable ones
have a closed form (ridge regression). Intervals are as wide as the runs scatter beside it, or as
the networks do that a fit of the others predicts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paradl.grids.design_space import ONLY
from paradl.grids.entries.calibration import DRAWN_OF_BLOCKS, CalibrationFile, LayoutTime
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import (
    SPREAD,
    find_recipe,
    find_spread,
    find_system_spread,
)
from paradl.grids.grid import Grid
from paradl.grids.inputs.uncertainty import list_spreads
from paradl.grids.library import find
from paradl.grids.models.transformers import find_transformer
from paradl.grids.reading.errors import InputError
from paradl.kernels.blocks.outputs import differentiate_epoch
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.layout_terms import LAYOUT_FORMULAS
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.work.transformer import Family
from paradl.sweep.calibration.observations import expect_one_system
from paradl.sweep.calibration.residuals import LEVEL
from paradl.sweep.measured.predicted_runs import Conditions, name_column, predict_runs
from paradl.sweep.measured.runs import MeasuredRun

# Runs that the expected spread counts as, beside those of a calibration.
EXPECTED = 2
# Spread of what a stack's runs share beside its parameters. Of 0, 0.05 and 0.08, sizes of networks
# are met by the other sizes' runs of their stack, and the rates as shipped, to 89.1, 89.2 and
# 89.0 %; by a factor of 0.08 alone to 88.0 % (53 sizes, 2026-11).
SHARED = 0.05


def fit_times(
    off: Floats, spread: Floats, slopes: Floats, priors: Mapping[str, float]
) -> LayoutTime | None:
    """Fit parameters and the factor of runs, and how far they scatter beside; None without a run.

    off [run]: ln of measured over predicted. spread [run]: of `off` by software that is known.
    slopes [run, parameter]: d ln time / d ln parameter. priors: spreads of the parameters'
    logarithms, by name. What it gains on networks that it has not seen: `python -m benchmarks
    layouts`.
    """
    if not off.size:
        return None
    scales = np.append([*priors.values()], SHARED)
    columns = np.column_stack([slopes, np.ones(off.size)]) * scales
    variance = columns @ columns.T + SPREAD**2 * np.eye(off.size)
    moves = columns.T @ np.linalg.solve(variance, off)
    squares = ((off - columns @ moves) / spread) ** 2
    scatter = np.sqrt((EXPECTED + squares.sum()) / (EXPECTED + off.size))
    *factors, factor = np.exp(moves * scales).tolist()
    return LayoutTime(
        factor=factor,
        parameters={name: value for name, value in zip(priors, factors, strict=True) if value != 1},
        runs=off.size,
        scatter=float(scatter),
        formulas=LAYOUT_FORMULAS,
    )


def move_times(times: LayoutTime | None, slopes: Floats, names: Iterable[str]) -> Floats:
    """Return the logarithms by which a fit moves times [run]; slopes: as in `fit_times`."""
    if times is None:
        return np.zeros(len(slopes))
    logs = np.log([times.parameters.get(name, 1.0) for name in names])
    moved: Floats = slopes @ logs + np.log(times.factor)
    return moved


@dataclass(frozen=True)
class LayoutRuns:
    """Runs of layouts on one system.

    off [run]: ln of measured over predicted. slopes [run, parameter]: as in `fit_times`, by
    DRAWN_OF_BLOCKS. families [run]: of the networks. models [run]: their names.
    """

    system: System
    off: Floats
    slopes: Floats
    families: Sequence[Family]
    models: NDArray[np.str_]

    def calibrate(self, cross_validation: bool = True) -> CalibrationFile:
        """A calibration of layouts alone."""
        system = self.system
        file = CalibrationFile(
            name=system.name,
            system=system.machine,
            oracle="machine",
            precision=system.precision,
            software=system.software,
            switches=system.switches,
            layouts=self._fit(np.full(self.off.size, fill_value=True)),
        )
        return self.add_to(file, cross_validation)

    def add_to(self, file: CalibrationFile, cross_validation: bool = True) -> CalibrationFile:
        """A calibration with these layouts, and how accurate their predictions are."""
        size = self.off.size
        kept: dict[str, NDArray[np.bool_]] = {}  # runs to fit, for each run that is left out
        if cross_validation and size > 1:  # a single run leaves none to fit
            kept["layouts, run"] = ~np.eye(size, dtype=bool)
        if cross_validation and np.unique(self.models).size > 1:
            kept["layouts, model"] = self.models[:, None] != self.models
        least = self._find_least_scatter(kept.get("layouts, model", ()))
        fitted = self._fit(np.full(size, fill_value=True), least)
        accuracy = {
            "layouts, uncalibrated": self._rate([None] * size),
            "layouts, fit": self._rate([fitted] * size),
        }
        for name, rows in kept.items():
            accuracy[name] = self._rate([self._fit(row, least) for row in rows])
        return file.model_copy(
            update={"layouts": fitted, "accuracy": {**file.accuracy, **accuracy}}
        )

    @cached_property
    def _spread(self) -> Floats:
        """The spread that is expected of `off`, by software that is known."""
        device, recipe = self.system.pe.device, find_recipe(self.system)
        return np.array([find_spread(device, recipe, family) for family in self.families])

    def _fit(self, rows: NDArray[np.bool_], least: float = 0.0) -> LayoutTime | None:
        """Fit some of the runs. least: the scatter is at least this."""
        priors = list_spreads(self.system, DRAWN_OF_BLOCKS)
        times = fit_times(self.off[rows], self._spread[rows], self.slopes[rows], priors)
        return times and times.model_copy(update={"scatter": max(times.scatter, least)})

    def _find_least_scatter(self, kept: Iterable[NDArray[np.bool_]]) -> float:
        """Return the scatter at which intervals hold LEVEL of the runs that fits leave out."""
        fits = [self._fit(rows) for rows in kept]
        if not fits:
            return 0.0
        away = np.abs(self._find_rest(fits)) / (PERCENTILES[90] * self._spread)
        return float(np.quantile(away, LEVEL, method="higher"))

    def _find_rest(self, fits: Sequence[LayoutTime | None]) -> Floats:
        """Return what is left of `off` by a fit for each run."""
        rows = zip(fits, self.slopes[:, None], strict=True)
        moved = [move_times(*row, DRAWN_OF_BLOCKS) for row in rows]
        rest: Floats = self.off - np.concatenate(moved)
        return rest

    def _rate(self, fits: Sequence[LayoutTime | None]) -> dict[str, float]:
        """Mean accuracy and share within 80 % intervals of predictions by a fit for each run."""
        off, recipe = self._find_rest(fits), find_recipe(self.system)
        spreads = [
            find_system_spread(self.system, recipe, family, times)
            for family, times in zip(self.families, fits, strict=True)
        ]
        return {
            "rows": float(off.size),
            "total": float(np.maximum(0.0, 1 - np.abs(np.expm1(-off))).mean()),
            "total_in_interval": float(np.mean(np.abs(off) <= PERCENTILES[90] * np.array(spreads))),
        }


def is_layout(run: MeasuredRun) -> bool:
    """True if layouts answer for a run."""
    strategy = parse_strategy(run.strategy, f"{run.where}: strategy")
    if strategy.divides_layers:
        return False
    with name_column(run):
        dataset = find("dataset", run.dataset, Path())
        return find_transformer(find("model", run.model, Path()), (dataset,)) is not None


def observe_layouts(runs: Sequence[MeasuredRun], system: str | None) -> LayoutRuns:
    """Predict runs of layouts. InputError: several systems, or a run that cannot exist."""
    predicted = predict_runs(runs, Conditions(system, "none", {"oracle": "machine"}))
    first = predicted[0].grid.systems[0]
    expect_one_system(runs, [run.grid.systems[0].name for run in predicted])
    off, slopes, families, models = [], [], list[Family](), []
    for run in predicted:
        if run.predicted.total is None:
            broken = ", ".join([*run.answer["limit"], *run.answer["obstacles"]])
            raise InputError(
                f"impossible run: {broken}",
                where=run.row.where,
                advice="write the degrees that ran: they divide its PEs, batch and network",
            )
        workload = run.grid.workload(*ONLY[:3])
        assert workload is not None  # there is a prediction
        families.append(workload.transformer.family)
        models.append(run.grid.models[0].name)
        off.append(np.log(run.row.measured.total or np.nan) - np.log(run.predicted.total))
        slopes.append(find_elasticities(run.grid))
    return LayoutRuns(first, np.array(off), np.array(slopes), families, np.array(models))


def find_elasticities(grid: Grid) -> Floats:
    """Return d ln time / d ln parameter of a grid's one cell, by DRAWN_OF_BLOCKS."""
    case = grid.case(ONLY)
    assert case is not None  # there is a prediction
    time, changes = differentiate_epoch(case, parameters=DRAWN_OF_BLOCKS)
    slopes: Floats = np.ravel(changes / time)
    return slopes
