"""A calibration as it holds for one model and data set: its time on one PE, and its limits."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from grids.entries.calibration import CalibrationFile, FittedSeries, SerialTime
from grids.entries.strategies import Strategy
from grids.models.layers import Floats


@dataclass(frozen=True)
class Calibrated:
    """measured: whether the model has a profile on the system's device.

    layers: kinds of its layers, as `LayerTable.multipliers` names them. architecture: the
    network's fingerprint.
    """

    file: CalibrationFile
    model: str
    dataset: str
    measured: bool
    layers: tuple[str, ...] = ()
    architecture: str = ""

    @property
    def serial(self) -> SerialTime:
        """The model's time on one PE, of what its profile or the roofline says."""
        if self.has_run:
            return self.file.serial_time(self.model, self.measured)
        return self.file.unseen_time(self.measured)

    @property
    def has_run(self) -> bool:
        """True if a run of this network was fitted."""
        models = {series.model for series in self.file.series} | self.file.serial.keys()
        return self.model in models and not self.file.has_other(self.model, self.architecture)

    def find_widening(self, strategy: Strategy, p: Floats) -> Floats:
        """1 for runs that were fitted; wider for another series, and for another scale."""
        own = [each for each in self.file.series if self._is(each, strategy)]
        error = self.file.error
        # Of a series that was not fitted, all others say at which scales the machine is known.
        away = _count_octaves(p, own or self.file.series)
        # One PE is the same run whatever the strategy.
        unseen = np.where(p == 1, 0.0, 0.0 if own else error.unseen)
        return np.asarray(1 + unseen + error.distance * away)

    def _is(self, series: FittedSeries, strategy: Strategy) -> bool:
        return self.has_run and series.model == self.model and series.strategy == strategy.base

    def extrapolation(self, strategy: Strategy, p: float, b: float) -> list[str]:
        """In what respects a configuration lies beyond the runs that were fitted."""
        runs = self.file.series
        reasons = []
        if strategy.base not in {each.strategy for each in runs} | {"serial"}:
            reasons.append(f"no run of {strategy.base} was calibrated")
        elif not self.has_run:
            reasons.append(f"no run of {self.model} was calibrated")
        elif strategy.base != "serial" and not any(self._is(each, strategy) for each in runs):
            reasons.append(f"no run of {self.model} under {strategy.base} was calibrated")
        unseen = [kind for kind in self.layers if kind not in self.file.layers]
        # Who wrote a calibration by hand need not say of which layers it is.
        if unseen and self.file.layers:
            reasons.append(f"no run with layers of {' and '.join(unseen)} was calibrated")
        # The whole range counts, gaps in it do not: the spread grows in them (`find_widening`).
        pes = [count for each in runs for count in each.pe]
        batches = [size for each in runs for size in each.batch]
        reasons += _tell_beyond("p", p, pes) + _tell_beyond("b", b, batches)
        return reasons


def _count_octaves(p: Floats, series: Iterable[FittedSeries]) -> Floats:
    """|log2| of each p over the nearest PE count of the series."""
    counts = np.array(sorted({count for each in series for count in each.pe} or {1}), float)
    return np.asarray(np.abs(np.log2(p[..., None] / counts)).min(axis=-1))


def _tell_beyond(name: str, value: float, values: list[int]) -> list[str]:
    if not values or min(values) <= value <= max(values):
        return []
    return [f"{name} = {value:g} is outside the calibrated {min(values)} to {max(values)}"]
