"""Anomalies: runs far from their prediction, and the likely cause, which the terms tell.

What is off (compute or communication), in which direction, which term dominates it, and what the
other runs of the same series did: that is all the evidence, so a cause is a first suspicion.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from grids.inputs.groups import divided
from grids.reading.units import prefixed
from kernels.calibration import LARGE_MESSAGE
from sweep.measured.predicted_runs import PredictedRun
from sweep.questions.choice import with_group
from sweep.questions.predict import ONLY, number, prediction

# Far from an interval: half again beyond its end, in log time from the median. Of a normal error
# with 80 % inside, one in twenty lies there.
FAR = 1.5
# Far from a prediction without an interval: by more than this factor.
FACTOR = 1.5
# What is off by less than this part of the whole iteration does not matter.
MATERIAL = 0.1
# A run is slower for its scale if the excess over the prediction grew so much in its series.
GROWN = 1.25

WORDS = {"total": "the iteration", "comp": "compute", "comm": "communication"}
NO_START_UPS = dict.fromkeys(("intra_latency", "inter_latency", "staging_latency"), 0.0)
COMPUTE = ("forward_backward", "pipeline_bubble", "weight_update", "split_overhead")
SPLIT = ("spatial", "filter", "channel")


@dataclass(frozen=True)
class Deviation:
    """A part of an iteration that took another time than predicted [s]."""

    part: str
    measured: float
    predicted: float

    @property
    def factor(self) -> float:
        return self.measured / self.predicted if self.predicted else math.inf

    @property
    def slower(self) -> bool:
        return self.measured > self.predicted


def find_anomaly(case: PredictedRun, cases: Sequence[PredictedRun]) -> dict[str, Any] | None:
    """What stands out in a run, None where nothing does; `cases` are all runs, itself included."""
    found = _find_deviation(case)
    if found is None:
        return None
    term, share = _find_dominant_term(case, found.part)
    return {
        "part": WORDS[found.part],
        "factor": found.factor if math.isfinite(found.factor) else None,
        "term": term,
        "what": f"{WORDS[found.part]} took {found.measured:.3g} s, {found.predicted:.3g} s are "
        f"predicted, {share:.0%} of it {term}",
        "cause": _suspect_cause(case, cases, found),
    }


def _find_deviation(case: PredictedRun) -> Deviation | None:
    """The part that is off by most; the total where the parts were not measured or are not off."""
    for parts in (("comp", "comm"), ("total",)):
        off = [each for part in parts if (each := _find_far_part(case, part))]
        if off:
            return max(off, key=lambda each: abs(each.measured - each.predicted))
    return None


def _compare_part(case: PredictedRun, part: str) -> Deviation | None:
    measured, predicted = getattr(case.run.measured, part), getattr(case.predicted, part)
    if measured is None or predicted is None:
        return None
    return Deviation(part, measured, predicted)


def _find_far_part(case: PredictedRun, part: str) -> Deviation | None:
    """How a part deviates, if far and by a material time."""
    found, total = _compare_part(case, part), case.run.measured.total
    if found is None or total is None:
        return None
    if abs(found.measured - found.predicted) < MATERIAL * total:
        return None
    return found if _is_far(case, found) else None


def _is_far(case: PredictedRun, found: Deviation) -> bool:
    if not found.measured or not found.predicted:
        return True
    if case.intervals is None:
        return abs(math.log(found.factor)) > math.log(FACTOR)
    interval = case.intervals[found.part]
    end = interval["p90"] if found.measured > interval["p50"] else interval["p10"]
    half = abs(math.log(end / interval["p50"]))
    return abs(math.log(found.measured / interval["p50"])) > FAR * half


def _select_terms(case: PredictedRun, part: str) -> dict[str, float]:
    """The terms [s an epoch] that make up a part."""
    return {
        name: value or 0.0
        for name, value in case.found["terms"].items()
        if part == "total" or (name in COMPUTE) == (part == "comp")
    }


def _find_dominant_term(case: PredictedRun, part: str) -> tuple[str, float]:
    """The largest term of a part, and its share of the part."""
    terms = _select_terms(case, part)
    name = max(terms, key=terms.__getitem__)
    return name, terms[name] / (sum(terms.values()) or 1.0)


def _suspect_cause(case: PredictedRun, cases: Sequence[PredictedRun], found: Deviation) -> str:
    repeated = _suspect_variation(case, cases)
    if repeated:
        return repeated
    if found.part == "total":
        return _suspect_larger_part(case, cases, found)
    if found.part == "comp":
        return _suspect_compute(case, found)
    return _suspect_communication(case, cases, found)


def _suspect_variation(case: PredictedRun, cases: Sequence[PredictedRun]) -> str | None:
    """Whether another run of the same configuration took about what is predicted."""
    for other in cases:
        same = (other.run.series, other.run.p) == (case.run.series, case.run.p)
        if same and other is not case and _find_deviation(other) is None:
            return (
                f"runs vary: another of the same configuration took {other.run.measured.total:.3g} "
                "s, near the prediction (other jobs, input loading)"
            )
    return None


def _suspect_larger_part(
    case: PredictedRun, cases: Sequence[PredictedRun], found: Deviation
) -> str:
    """Where the parts were not measured, the one that dominates the prediction is suspected."""
    computes = (case.predicted.comp or 0.0) >= (case.predicted.comm or 0.0)
    return _suspect_compute(case, found) if computes else _suspect_communication(case, cases, found)


def _suspect_compute(case: PredictedRun, found: Deviation) -> str:
    group = case.found["group"]
    inside = case.grid.strategies[0].group_strategy
    if found.part == "comp" and inside in SPLIT and group > 1:
        return _suspect_division(case, found, group)
    pace = "slower" if found.slower else "faster"
    return (
        f"the time of one PE: layers run {pace} than their profile says "
        "(another mini-batch or library, input loading)"
    )


def _suspect_division(case: PredictedRun, found: Deviation, group: int) -> str:
    """How much of the serial compute S stays whole: measured = S (u + (1-u) / p2)."""
    serial = _predict_serial(case)
    if found.measured > serial:
        return (
            f"compute grew when it was split, to {found.measured / serial:.1f} times the serial: "
            "copies, packing or waiting count as compute"
        )
    whole, expected = (
        max(0.0, (seconds / serial - 1 / group) / (1 - 1 / group))
        for seconds in (found.measured, found.predicted)
    )
    verb = "does not shrink" if found.slower else "shrinks better"
    return (
        f"compute {verb}: {whole:.0%} of the serial compute stays on each of the group's "
        f"{group} PEs, {expected:.0%} are predicted"
    )


def _predict_serial(case: PredictedRun) -> float:
    """[s] one PE computes on the samples of a replica."""
    alone = replace(case.asked, strategy="serial", pe=1)
    return float(prediction(alone.grid())["iteration_comp_time"])


def _suspect_communication(
    case: PredictedRun, cases: Sequence[PredictedRun], found: Deviation
) -> str:
    term, _ = _find_dominant_term(case, "comm")
    if not found.slower:
        return f"overlap with compute, or more bandwidth than {term} is given"
    return (
        _suspect_congestion(case, cases, found)
        or _suspect_large_messages(case)
        or _suspect_start_ups(case, found)
        or f"bandwidth: {term} has about 1/{found.factor:.1f} of what the system states "
        "(host staging, library, other traffic)"
    )


def _suspect_congestion(
    case: PredictedRun, cases: Sequence[PredictedRun], found: Deviation
) -> str | None:
    """Whether fewer PEs of the same series, on several nodes too, were nearer their prediction."""
    node = case.grid.systems[0].pes_per_node
    smaller = [
        (other.run.p, each.factor)
        for other in cases
        if other.run.series == case.run.series and node < other.run.p < case.run.p
        if (each := _compare_part(other, found.part))
    ]
    if not smaller:
        return None
    p, factor = min(smaller, key=lambda each: each[1])
    if factor * GROWN > found.factor:
        return None
    return (
        f"congestion: {found.factor:.1f} times the prediction on {case.run.p} PEs, "
        f"{factor:.1f} times on {p}: links shared with other jobs, or between racks"
    )


def _suspect_large_messages(case: PredictedRun) -> str | None:
    """Whether gradients, or samples, that pass through host memory are very large messages."""
    inside, group = case.grid.strategies[0].group_strategy, case.found["group"]
    if inside not in SPLIT or group == 1 or case.grid.systems[0].staging is None:
        return None
    # Hybrids of filter and channel reduce between PEs directly.
    if inside != "spatial" and case.found["replicas"] > 1:
        return None
    problem = with_group(case.grid, ONLY, group)
    assert problem is not None  # it has a prediction that the run deviates from
    (work, _), delta = divided(problem.groups, case.grid.options), case.found["parameters"]["delta"]
    messages = {"gradients": delta * number(work.undivided)}
    if inside == "spatial":
        messages["samples"] = delta * case.run.samples_per_replica * number(work.sample)
    name = max(messages, key=messages.__getitem__)
    if messages[name] <= LARGE_MESSAGE:
        return None
    return (
        f"large messages: {prefixed(messages[name], 'B')} of {name} go through host memory, "
        "far slower than the path's bandwidth"
    )


def _suspect_start_ups(case: PredictedRun, found: Deviation) -> str | None:
    """Whether most of the predicted communication is start-ups of messages."""
    free = prediction(replace(case.asked, parameters=NO_START_UPS).grid())
    if not case.predicted.comm:
        return None
    share = 1 - float(free["iteration_comm_time"]) / case.predicted.comm
    if share < 0.5:
        return None
    return (
        f"start-up latency: {share:.0%} of the predicted communication is start-ups of messages, "
        f"which take {found.factor:.1f} times as long"
    )
