"""A calibration for one model and data set: its time on one PE, and where it extrapolates."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from paradl.grids.entries.calibration import CalibrationFile, FittedSeries, SerialTime
from paradl.grids.entries.strategies import Strategy
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.parallelisms import DATA


@dataclass(frozen=True)
class Calibrated:
    """A calibration file seen from one model and data set.

    measured: whether the model has a profile on the system's device. layers: kinds of its layers,
    named as in `LayerTable.multipliers`. architecture: the network's fingerprint.
    """

    file: CalibrationFile
    model: str
    dataset: str
    measured: bool
    layers: tuple[str, ...] = ()
    architecture: str = ""

    @property
    def serial(self) -> SerialTime:
        """Factor on the model's profiled (or roofline) time on one PE, with its spread."""
        if self.has_run:
            return self.file.serial_time(self.model, self.measured)
        return self.file.unseen_time(self.measured)

    @property
    def has_run(self) -> bool:
        """True if a run of this network was in the fit."""
        models = {series.model for series in self.file.series} | self.file.serial.keys()
        return self.model in models and not self.file.has_other(self.model, self.architecture)

    def find_widening(self, strategy: Strategy, p: Floats) -> Floats:
        """Return 1 for fitted runs; more for another series, and for each octave of PE count."""
        fitted = [series for series in self.file.series if self._is(series, strategy)]
        error = self.file.error
        # For a series that was not fitted, all others say at which scales the machine is known; and
        # for one PE, which is the same run under any strategy.
        of_all, of_fitted = (_count_octaves(p, some) for some in (self.file.series, fitted))
        octaves = np.where((p == 1) | (not fitted), of_all, of_fitted)
        unseen = np.where(p == 1, 0.0, 0.0 if fitted else error.unseen)
        return np.asarray(1 + unseen + error.distance * octaves)

    def _is(self, series: FittedSeries, strategy: Strategy) -> bool:
        # Groups of one PE divide nothing.
        base = DATA if strategy.replicated and strategy.group == 1 else strategy.base
        return self.has_run and series.model == self.model and series.strategy == base

    def was_fitted(self, strategy: Strategy, p: float, b: float) -> bool:
        """True if a run of this configuration was in the fit."""
        return any(
            self._is(run, strategy) and run.dataset == self.dataset
            for run in self.file.series
            if p in run.pe and b in run.batch
        )

    def extrapolation(self, strategy: Strategy, p: float, b: float) -> list[str]:
        """List the ways in which a configuration lies outside the fitted runs."""
        runs = self.file.series
        reasons = []
        if strategy.base not in {run.strategy for run in runs} | {"serial"}:
            reasons.append(f"no run of {strategy.base} was calibrated")
        elif not self.has_run:
            reasons.append(f"no run of {self.model} was calibrated")
        elif strategy.base != "serial" and not any(self._is(run, strategy) for run in runs):
            reasons.append(f"no run of {self.model} under {strategy.base} was calibrated")
        unseen = [kind for kind in self.layers if kind not in self.file.layers]
        # A calibration written by hand need not list its layers.
        if unseen and self.file.layers:
            reasons.append(f"no run with layers of {' and '.join(unseen)} was calibrated")
        # The whole range counts as fitted; `find_widening` grows the spread inside its gaps.
        pes = [count for run in runs for count in run.pe]
        batches = [size for run in runs for size in run.batch]
        reasons += _explain_outside("p", p, pes) + _explain_outside("b", b, batches)
        return reasons


def _count_octaves(p: Floats, series: Iterable[FittedSeries]) -> Floats:
    """Distance of each p from the nearest PE count of the series, |log2| [octaves]."""
    counts = np.array(sorted({count for run in series for count in run.pe} or {1}), float)
    return np.asarray(np.abs(np.log2(p[..., None] / counts)).min(axis=-1))


def _explain_outside(name: str, value: float, values: list[int]) -> list[str]:
    if not values or min(values) <= value <= max(values):
        return []
    return [f"{name} = {value:g} is outside the calibrated {min(values)} to {max(values)}"]
