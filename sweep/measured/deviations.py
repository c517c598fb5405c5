"""Deviations: parts of a measured iteration that are far from their prediction."""

import math
from dataclasses import dataclass

from sweep.measured.predicted_runs import PredictedRun

# Far from an interval: half again beyond its end, in log time from the median. Of a normal error
# with 80 % inside, one in twenty lies there.
FAR = 1.5
# Far from a prediction without an interval: by more than this factor.
FACTOR = 1.5
# What is off by less than this part of the whole iteration does not matter.
MATERIAL = 0.1


@dataclass(frozen=True)
class Deviation:
    """A part of an iteration that took another time than predicted [s]."""

    part: str
    measured: float
    predicted: float

    @property
    def factor(self) -> float:
        """How many times the prediction was measured."""
        return self.measured / self.predicted if self.predicted else math.inf

    @property
    def slower(self) -> bool:
        """Tell whether it took longer than predicted."""
        return self.measured > self.predicted


def find_deviation(run: PredictedRun) -> Deviation | None:
    """The part that is off by most; the total where the parts were not measured or are not off."""
    for parts in (("comp", "comm"), ("total",)):
        off = [deviation for part in parts if (deviation := _find_far_part(run, part))]
        if off:
            return max(off, key=lambda deviation: abs(deviation.measured - deviation.predicted))
    return None


def compare_part(run: PredictedRun, part: str) -> Deviation | None:
    """A part as measured and predicted; None where one of the two is not known."""
    measured, predicted = getattr(run.row.measured, part), getattr(run.predicted, part)
    if measured is None or predicted is None:
        return None
    return Deviation(part, measured, predicted)


def _find_far_part(run: PredictedRun, part: str) -> Deviation | None:
    """How a part deviates, if far and by a material time."""
    deviation, total = compare_part(run, part), run.row.measured.total
    if deviation is None or total is None:
        return None
    if abs(deviation.measured - deviation.predicted) < MATERIAL * total:
        return None
    return deviation if _is_far(run, deviation) else None


def _is_far(run: PredictedRun, deviation: Deviation) -> bool:
    """Tell whether a part lies far outside its interval, or, without one, is off by FACTOR."""
    if not deviation.measured or not deviation.predicted:
        return True
    if run.intervals is None:
        return abs(math.log(deviation.factor)) > math.log(FACTOR)
    interval = run.intervals[deviation.part]
    end = interval["p90"] if deviation.measured > interval["p50"] else interval["p10"]
    half = abs(math.log(end / interval["p50"]))
    return abs(math.log(deviation.measured / interval["p50"])) > FAR * half
