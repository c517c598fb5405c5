"""Deviations: parts of a measured iteration that are far from their prediction."""

import math
from dataclasses import dataclass

from sweep.measured.predicted_runs import PredictedRun

# A time is far off its interval if it is 1.5 times as far from the median as the interval's end, in
# log time. For normal errors, one in twenty is.
FAR = 1.5
# Without an interval, a time is far off its prediction beyond this factor.
FACTOR = 1.5
# Smaller differences, as a share of the whole iteration, do not matter.
MATERIAL = 0.1


@dataclass(frozen=True)
class Deviation:
    """A part of an iteration that took another time than predicted [s]."""

    part: str
    measured: float
    predicted: float

    @property
    def factor(self) -> float:
        """Measured over predicted time."""
        return self.measured / self.predicted if self.predicted else math.inf

    @property
    def slower(self) -> bool:
        """Whether it took longer than predicted."""
        return self.measured > self.predicted


def find_deviation(run: PredictedRun) -> Deviation | None:
    """Return the part that is off by most, or the total if no part was measured or is off."""
    # Parts first: the total hides a slow part behind a fast one.
    for parts in (("comp", "comm"), ("total",)):
        off = [deviation for part in parts if (deviation := _find_far_part(run, part))]
        if off:
            return max(off, key=lambda deviation: abs(deviation.measured - deviation.predicted))
    return None


def compare_part(run: PredictedRun, part: str) -> Deviation | None:
    """Return a part as measured and predicted; None if either is unknown."""
    measured, predicted = getattr(run.row.measured, part), getattr(run.predicted, part)
    if measured is None or predicted is None:
        return None
    return Deviation(part, measured, predicted)


def _find_far_part(run: PredictedRun, part: str) -> Deviation | None:
    deviation, total = compare_part(run, part), run.row.measured.total
    if deviation is None or total is None:
        return None
    if abs(deviation.measured - deviation.predicted) < MATERIAL * total:
        return None
    return deviation if _is_far(run, deviation) else None


def _is_far(run: PredictedRun, deviation: Deviation) -> bool:
    """Return whether a part is far outside its interval, or off by FACTOR if it has none."""
    if not deviation.measured or not deviation.predicted:
        return True
    if run.intervals is None:
        return abs(math.log(deviation.factor)) > math.log(FACTOR)
    interval = run.intervals[deviation.part]
    end = interval["p90"] if deviation.measured > interval["p50"] else interval["p10"]
    # On the side of the measurement: intervals are skewed.
    half = abs(math.log(end / interval["p50"]))
    return abs(math.log(deviation.measured / interval["p50"])) > FAR * half
