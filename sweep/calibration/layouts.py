"""Calibrate layouts of transformers: one factor on all times of a stack on a machine.

The rates of layouts hold for any machine and stack. Runs of one stack on one machine share an error
of its own, which their mean shows; no run gets a number for itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grids.entries.calibration import CalibrationFile, LayoutTime
from grids.entries.strategies import parse_strategy
from grids.entries.systems import System
from grids.entries.transformer_rates import SPREAD, find_recipe, find_system_spread
from grids.reading.errors import InputError
from kernels.names.arrays import Floats
from kernels.names.stored import PERCENTILES
from sweep.calibration.observations import expect_one_system
from sweep.cells.configuration import ONLY
from sweep.measured.predicted_runs import Conditions, predict_runs
from sweep.measured.runs import MeasuredRun

# Spread of ln(measured / predicted) between stacks on a machine: 0.09 between 23 of dense networks
# in the catalogue's runs of layouts, 0.12 within one. What a calibration gains on networks that it
# has not seen: `python -m benchmarks layouts`.
STACKS = 0.08


def find_factor(off: Floats) -> float:
    """Most probable factor on predicted times; off [run]: ln of measured over predicted."""
    return float(np.exp(off.sum() / (SPREAD**2 / STACKS**2 + off.size)))


@dataclass(frozen=True)
class LayoutRuns:
    """Runs of layouts on one system. off [run]: ln of measured over predicted. spread [run]."""

    system: System
    off: Floats
    spread: Floats

    def calibrate(self) -> CalibrationFile:
        """A calibration of layouts alone."""
        system = self.system
        file = CalibrationFile(
            name=system.name,
            system=system.machine,
            oracle="machine",
            precision=system.precision,
            software=system.software,
            layouts=LayoutTime(factor=1.0, runs=self.off.size),
        )
        return self.add_to(file)

    def add_to(self, file: CalibrationFile) -> CalibrationFile:
        """A calibration with these layouts, and how accurate their predictions are."""
        size = self.off.size
        factor = find_factor(self.off)
        others = ~np.eye(size, dtype=bool)
        accuracy = {
            "layouts, uncalibrated": self._rate(np.ones(size)),
            "layouts, fit": self._rate(np.full(size, factor)),
            "layouts, run": self._rate(np.array([find_factor(self.off[row]) for row in others])),
        }
        layouts = LayoutTime(factor=factor, runs=size)
        return file.model_copy(
            update={"layouts": layouts, "accuracy": {**file.accuracy, **accuracy}}
        )

    def _rate(self, factors: Floats) -> dict[str, float]:
        """Mean accuracy and share within 80 % intervals of predictions times factors [run]."""
        off = self.off - np.log(factors)
        return {
            "rows": float(off.size),
            "total": float(np.maximum(0.0, 1 - np.abs(np.expm1(-off))).mean()),
            "total_in_interval": float(np.mean(np.abs(off) <= PERCENTILES[90] * self.spread)),
        }


def is_layout(run: MeasuredRun) -> bool:
    """True if layouts of transformers answer for a run."""
    return parse_strategy(run.strategy, f"{run.where}: strategy").laid


def observe_layouts(runs: Sequence[MeasuredRun], system: str) -> LayoutRuns:
    """Predict runs of layouts. InputError: several systems, or a run that cannot exist."""
    predicted = predict_runs(runs, Conditions(system, "none", {"oracle": "machine"}))
    first = predicted[0].grid.systems[0]
    expect_one_system(runs, [run.grid.systems[0].name for run in predicted])
    off, spreads = [], []
    for run in predicted:
        if run.predicted.total is None:
            limits = ", ".join(run.answer["limit"])
            raise InputError(f"impossible run: {limits}", where=run.row.where)
        workload = run.grid.workload(*ONLY[:3])
        assert workload is not None  # there is a prediction
        spreads.append(
            find_system_spread(first, find_recipe(first), bool(workload.transformer.experts))
        )
        off.append(np.log(run.row.measured.total or np.nan) - np.log(run.predicted.total))
    return LayoutRuns(first, np.array(off), np.array(spreads))
