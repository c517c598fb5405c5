"""Anomalies: runs far from their prediction, and the likely cause.

The evidence is what is off (compute or communication) and in which direction, which term dominates
it, and how other runs of the series fared, which differ in their number of PEs alone: if some are
close to their prediction, what all share, such as the time of one PE, is not to blame. So a cause
is only a first suspicion.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from paradl.grids.design_space import ONLY
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.kernels.names.terms import Part
from paradl.sweep.answers.types.runs import Anomaly
from paradl.sweep.measured.predicted_runs import (
    DOUBT,
    Deviation,
    PredictedRun,
    identify_case,
    is_doubtful,
)
from paradl.sweep.measured.runs import PARTS
from paradl.sweep.questions.predict import predict_grid

# Growth of measured over predicted time, within a series, that scatter does not explain.
GROWN = 1.25

WORDS = {"total": "the iteration", "comp": "compute", "comm": "communication"}
# The first suspects by the part that is off: in a single run, in all runs from some number of PEs
# on, and where they get worse with PEs.
IN_ONE_RUN = {
    **dict.fromkeys(
        ("total", "comm"), "congestion by other jobs, or one slow PE that all wait for"
    ),
    "comp": "a slow or shared PE, or waiting that counts as compute",
}
AT_SCALE = {
    "total": "the wait for the slowest PE, exchanges, or input from shared storage",
    "comp": "waiting or copies that count as compute",
    "comm": "links between racks, or another algorithm of the exchange",
}
GROWING = AT_SCALE | {"comm": "the wait for the slowest PE, or exchanges"}


@dataclass(frozen=True)
class RunEvidence:
    """What all runs of a file say about each of them.

    usual [configuration]: measured time [s] of a run near its prediction. factors [series, part]
    [PEs]: measured over predicted time, the nearest to 1.
    """

    usual: Mapping[Hashable, float]
    factors: Mapping[Hashable, Mapping[int, float]]


def collect_evidence(
    runs: Sequence[PredictedRun], deviations: Sequence[Deviation | None]
) -> RunEvidence:
    """Return what runs say about each other; deviations: of each, None if it is as predicted."""
    usual: dict[Hashable, float] = {}
    factors: dict[Hashable, dict[int, float]] = {}
    for run, deviation in zip(runs, deviations, strict=True):
        if deviation is None and run.row.measured.total is not None:
            usual.setdefault(identify_case(run.row), run.row.measured.total)
        for part in PARTS:
            compared = run.compare(part)
            if compared and compared.measured and compared.predicted:
                at = factors.setdefault((_identify_series(run), part), {})
                known = (at.get(run.row.p, compared.factor), compared.factor)
                at[run.row.p] = min(known, key=lambda factor: abs(math.log(factor)))
    return RunEvidence(usual, factors)


def _identify_series(run: PredictedRun) -> Hashable:
    """Return a run's series; without division a serial run belongs to data parallelism."""
    model, dataset, _, strategy, batch = run.row.series
    undivided = run.answer["group"] == 1 and "layout" not in run.answer
    return run.answer["system"], "" if undivided else strategy, model, dataset, batch


@dataclass(frozen=True)
class Pattern:
    """At which numbers of PEs a series deviates as one of its runs does.

    factors [PEs]: measured over predicted time. band: PEs around the run, all of whose runs are
    off. near: PEs whose runs are close to their prediction; none if all are off, and grow.
    """

    deviation: Deviation
    factors: Mapping[int, float]
    band: Sequence[int]
    near: Sequence[int]
    pes_per_node: int

    @property
    def is_alone(self) -> bool:
        """True if no other run is off as this one is."""
        return len(self.band) == 1

    @property
    def is_last(self) -> bool:
        """True if no run on more PEs is close to its prediction."""
        return max(self.near, default=0) < self.band[0]

    def describe(self) -> str:
        """Name the runs that are off and those that are not, and the likely cause."""
        part = self.deviation.part
        # On fewer PEs, if there is such a run.
        near = max((p for p in self.near if p < self.band[0]), default=min(self.near, default=0))
        usual = f" ({self.factors[near]:.1f} times the prediction on {near:,} PEs)" if near else ""
        if not self.deviation.slower:
            return f"this run alone{usual}: are its PEs and samples right?"
        if self.is_alone:
            growing = f"; if a second run is as slow, what grows with PEs: {GROWING[part]}"
            return f"this run alone{usual}: {IN_ONE_RUN[part]}{growing if self.is_last else ''}"
        slow = "iterations" if part == "total" else WORDS[part]
        off = [self.factors[p] for p in self.band]
        first, last = f"{self.band[0]:,}", f"{self.band[-1]:,}"
        is_open = self.is_last and self.near
        where = f"from {first} PEs on" if is_open else f"on {_join_ends(first, last)} PEs"
        return (
            f"{slow} slower than predicted in every run {where}, "
            f"{_join_ends(f'{min(off):.1f}', f'{max(off):.1f}')} times{usual}: "
            f"{self._suspect_scale()}"
        )

    def _suspect_scale(self) -> str:
        """Name what comes with more PEs."""
        part, first, last = self.deviation.part, self.band[0], self.band[-1]
        if max(self.near, default=first) <= self.pes_per_node < first and part != "comp":
            return f"bandwidth or start-ups between nodes of {self.pes_per_node:,} PEs"
        if self.factors[last] > GROWN * self.factors[first]:
            return f"it grows with PEs: {GROWING[part]}"
        return AT_SCALE[part]


def find_pattern(run: PredictedRun, deviation: Deviation, evidence: RunEvidence) -> Pattern | None:
    """Return where a run's series deviates as it does; None if that depends on no number of PEs.

    Communication inside a node says nothing about links between nodes.
    """
    node, part = run.grid.systems[0].pes_per_node, deviation.part
    # Closer to the prediction than to this run, in log time.
    halfway = abs(math.log(deviation.factor)) / 2 if deviation.measured else math.inf
    sign = 1 if deviation.slower else -1
    series = evidence.factors.get((_identify_series(run), part), {})
    factors = {
        p: factor
        for p, factor in sorted(series.items())
        if part != "comm" or (p <= node) == (run.row.p <= node)
    }
    near = [p for p, f in factors.items() if p != run.row.p and sign * math.log(f) < halfway]
    below = max((p for p in near if p < run.row.p), default=0)
    above = min((p for p in near if p > run.row.p), default=math.inf)
    band = [p for p in factors if below < p < above]
    grows = part == "comm" and factors[band[-1]] > GROWN * factors[band[0]]
    return Pattern(deviation, factors, band, near, node) if near or grows else None


def _join_ends(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


# A time is far off its interval if it is 1.5 times as far from the median as the interval's end, in
# log time. For errors as expected, Student's t, one in twelve is.
FAR = 1.5
# Without an interval, a time is far off its prediction beyond this factor.
FACTOR = 1.5
# Smaller differences, as a share of the whole iteration, do not matter.
MATERIAL = 0.1
# Share of the communication from which log files are the first suspect.
LOGGED = 0.1

# Hidden communication is no part of a measured time.
PREDICTED: dict[str, tuple[Part, ...]] = {
    "total": ("compute", "communication"),
    "comp": ("compute",),
    "comm": ("communication",),
}


def find_anomalies(runs: Sequence[PredictedRun]) -> list[Anomaly | None]:
    """Return the anomaly of each run among all; None where nothing stands out."""
    deviations = [find_deviation(run) for run in runs]
    # Collected once: to compare every run with all others took 4.4 s of CPU for 1,000 runs that all
    # stand out, and four times as much for twice as many (2026-11).
    evidence = collect_evidence(runs, deviations)
    return [
        _describe_anomaly(run, deviation, evidence) if deviation else None
        for run, deviation in zip(runs, deviations, strict=True)
    ]


def _describe_anomaly(run: PredictedRun, deviation: Deviation, evidence: RunEvidence) -> Anomaly:
    term, share = _find_dominant_term(run, deviation.part)
    return {
        "part": WORDS[deviation.part],
        "factor": deviation.factor if math.isfinite(deviation.factor) else None,
        "term": term,
        "what": f"{WORDS[deviation.part]} took {deviation.measured:.3g} s instead of "
        f"{deviation.predicted:.3g} s, of which {share:.0%} is {term}",
        "cause": _suspect_cause(run, deviation, evidence),
    }


def find_deviation(run: PredictedRun) -> Deviation | None:
    """Return the part that is off by most, or the total if no part was measured or is off."""
    # Parts first: the total hides a slow part behind a fast one.
    for parts in (("comp", "comm"), ("total",)):
        off = [found for part in parts if (found := run.compare(part)) and _is_far(run, found)]
        if off:
            return max(off, key=lambda deviation: deviation.error)
    return None


def _is_far(run: PredictedRun, deviation: Deviation) -> bool:
    """Return whether a part is far outside its interval, or off by FACTOR if it has none."""
    total = run.row.measured.total
    if total is None or deviation.error < MATERIAL * total:
        return False
    if not deviation.measured or not deviation.predicted:
        return True
    if run.intervals is None:
        return abs(math.log(deviation.factor)) > math.log(FACTOR)
    interval = run.intervals[deviation.part]
    end = interval["p90"] if deviation.measured > interval["p50"] else interval["p10"]
    # On the side of the measurement: intervals are skewed.
    half = abs(math.log(end / interval["p50"]))
    return abs(math.log(deviation.measured / interval["p50"])) > FAR * half


def _select_terms(run: PredictedRun, part: str) -> dict[str, float]:
    return {
        name: value or 0.0
        for name, value in run.answer["terms"].items()
        if EVERY_TERM[name].part in PREDICTED[part]
    }


def _find_dominant_term(run: PredictedRun, part: str) -> tuple[str, float]:
    """Return the largest term of a part, and its share of the part."""
    terms = _select_terms(run, part)
    name = max(terms, key=terms.__getitem__)
    return name, terms[name] / (sum(terms.values()) or 1.0)


def _suspect_cause(run: PredictedRun, deviation: Deviation, evidence: RunEvidence) -> str:
    whole = run.compare("total")
    if whole and is_doubtful(whole.factor):
        return DOUBT
    # If another run of the configuration took the predicted time, no term is to blame.
    usual = evidence.usual.get(identify_case(run.row))
    if usual is not None:
        return (
            f"runs vary: another run of this configuration took {usual:.3g} s, close to the "
            "prediction (other jobs, input loading)"
        )
    total, *parts = (getattr(run.row.measured, part) for part in PARTS)
    outside = 0.0 if None in (total, *parts) else float(total - sum(parts))
    if deviation.part == "total" and deviation.slower and outside >= MATERIAL * deviation.measured:
        return (
            f"neither compute nor communication: {outside:.3g} s are outside of both "
            "(input loading, checkpoints, validation)"
        )
    suspect = _find_suspect_part(run, deviation)
    # A group of all PEs divides layers into other parts at every p.
    is_split = deviation.part == "comp" and run.answer["group"] == run.row.p > 1
    pattern = None if is_split else find_pattern(run, deviation, evidence)
    if suspect == "comp":
        return pattern.describe() if pattern else _suspect_compute(run, deviation)
    return _suspect_communication(run, deviation, pattern)


def _find_suspect_part(run: PredictedRun, deviation: Deviation) -> str:
    """Return the part to blame for a deviation: of a total, the one that was not as predicted."""
    if deviation.part != "total":
        return deviation.part
    known = [compared for part in ("comp", "comm") if (compared := run.compare(part))]
    if len(known) == 1:
        return "comm" if known[0].part == "comp" else "comp"
    if known:
        return max(known, key=lambda compared: compared.error).part
    # Where the parts were not measured, the larger predicted one is the suspect.
    return "comp" if (run.predicted.comp or 0.0) >= (run.predicted.comm or 0.0) else "comm"


def _suspect_compute(run: PredictedRun, deviation: Deviation) -> str:
    """Blame layers that were not divided as predicted, or the speed of each PE."""
    group, strategy = run.answer["group"], run.grid.strategy(ONLY)
    # Several parallelisms, or those of layouts, divide layers in more ways than one share tells.
    is_split = strategy.splits("rows") or strategy.splits("weights")
    if deviation.part == "comp" and is_split and len(strategy.parts) == 1 and group > 1:
        return _suspect_division(run, deviation, group)
    # Nothing is split that could be split worse: what is left is the speed of a PE.
    pace = "slower" if deviation.slower else "faster"
    basis = "their profile" if run.answer["times"] == "measured" else "the machine's stated peak"
    exposed = deviation.part == "total" and group > 1 and deviation.slower
    return (
        f"the time of one PE: layers run {pace} than {basis} says "
        f"(another mini-batch or library, input loading)"
        f"{'; or less of the communication in the group is hidden' if exposed else ''}"
    )


def _suspect_division(run: PredictedRun, deviation: Deviation, group: int) -> str:
    """State the share u of the serial compute S that stays undivided: S (u + (1-u) / p2)."""
    alone = replace(run.case, strategy="serial", pe=1)
    serial = predict_grid(alone.grid())["iteration_comp_time"] or 0.0
    # No u in [0, 1] explains this; with filter, a measured group took longer than one PE
    # (docs/accuracy.md).
    if deviation.measured > serial:
        return (
            f"compute grew when it was split, to {deviation.measured / serial:.1f} times the "
            "serial time: copies, packing or waiting count as compute"
        )
    whole, expected = (
        max(0.0, (seconds / serial - 1 / group) / (1 - 1 / group))
        for seconds in (deviation.measured, deviation.predicted)
    )
    verb = "does not shrink" if deviation.slower else "shrinks better"
    return (
        f"compute {verb}: {whole:.0%} of the serial compute stays on each of the group's "
        f"{group} PEs, instead of {expected:.0%}"
    )


def _suspect_communication(run: PredictedRun, deviation: Deviation, pattern: Pattern | None) -> str:
    """Describe why communication took another time; the likelier causes come first."""
    term, _ = _find_dominant_term(run, "comm")
    if not deviation.slower:
        return f"overlap with compute, or more bandwidth than {term} assumes"
    if pattern and pattern.is_alone and not pattern.is_last:
        return pattern.describe()
    if term == "straggler_wait":
        return "PEs differ more than 'jitter' says: all wait for the slowest"
    # First, since both grow with PEs. Layouts have no such term.
    opened = _select_terms(run, "comm").get("log_files", 0.0)
    share = opened / (run.answer["comm_time"] or math.inf)
    if share >= LOGGED:
        return (
            f"log files: opening them one PE after another, at each exchange of a layer, is "
            f"{share:.0%} of the predicted communication; 'log_open' may be longer on this machine"
        )
    if pattern:
        return pattern.describe()
    return (
        f"bandwidth or start-ups: {term} takes {deviation.factor:.1f} times as long as the "
        "system states (host staging, library, other traffic)"
    )
