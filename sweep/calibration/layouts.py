"""Calibrate layouts of transformers: one factor on all times of a stack on a machine.

The rates of layouts hold for any machine and stack. Runs of one stack on one machine share an error
of its own, which their mean shows; no run gets a number for itself. Intervals are as wide as the
runs scatter beside that factor, or as the networks do that a fit of the others predicts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.calibration import CalibrationFile, LayoutTime
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import (
    SPREAD,
    STACK_SPREAD,
    find_recipe,
    find_spread,
    find_system_spread,
)
from paradl.grids.library import find
from paradl.grids.models.transformers import find_transformer
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.layout_terms import LAYOUT_FORMULAS
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.work.transformer import Family
from paradl.sweep.calibration.model_error import LEVEL
from paradl.sweep.calibration.observations import expect_one_system
from paradl.sweep.cells.design_space import ONLY
from paradl.sweep.measured.predicted_runs import Conditions, name_column, predict_runs
from paradl.sweep.measured.runs import MeasuredRun

# Runs that the expected spread counts as, beside those of a calibration.
EXPECTED = 2


def fit_times(off: Floats, spread: Floats) -> LayoutTime | None:
    """Fit the factor of runs, and how far they scatter beside it; None without a run.

    off [run]: ln of measured over predicted. spread [run]: of `off` by software that is known. What
    it gains on networks that it has not seen: `python -m benchmarks layouts`.
    """
    if not off.size:
        return None
    # The most probable one, of runs and of the spread that stacks have.
    factor = float(np.exp(off.sum() / (SPREAD**2 / STACK_SPREAD**2 + off.size)))
    squares = ((off - np.log(factor)) / spread) ** 2
    scatter = np.sqrt((EXPECTED + squares.sum()) / (EXPECTED + off.size))
    return LayoutTime(
        factor=factor, runs=off.size, scatter=float(scatter), formulas=LAYOUT_FORMULAS
    )


@dataclass(frozen=True)
class LayoutRuns:
    """Runs of layouts on one system.

    off [run]: ln of measured over predicted. families [run]: of the networks. models [run]: their
    names.
    """

    system: System
    off: Floats
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
        times = fit_times(self.off[rows], self._spread[rows])
        return times and times.model_copy(update={"scatter": max(times.scatter, least)})

    def _find_least_scatter(self, kept: Iterable[NDArray[np.bool_]]) -> float:
        """Return the scatter at which intervals hold LEVEL of the runs that fits leave out."""
        factors = [times.factor for rows in kept if (times := self._fit(rows))]
        if not factors:
            return 0.0
        away = np.abs(self.off - np.log(factors)) / (PERCENTILES[90] * self._spread)
        return float(np.quantile(away, LEVEL, method="higher"))

    def _rate(self, fits: Sequence[LayoutTime | None]) -> dict[str, float]:
        """Mean accuracy and share within 80 % intervals of predictions by a fit for each run."""
        factors = [times.factor if times else 1.0 for times in fits]
        off, recipe = self.off - np.log(factors), find_recipe(self.system)
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


def observe_layouts(runs: Sequence[MeasuredRun], system: str) -> LayoutRuns:
    """Predict runs of layouts. InputError: several systems, or a run that cannot exist."""
    predicted = predict_runs(runs, Conditions(system, "none", {"oracle": "machine"}))
    first = predicted[0].grid.systems[0]
    expect_one_system(runs, [run.grid.systems[0].name for run in predicted])
    off, families, models = [], list[Family](), []
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
    return LayoutRuns(first, np.array(off), families, np.array(models))
