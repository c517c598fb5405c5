"""Evidence: what the other runs of a file say about a run that stands out.

Runs of a series differ in their number of PEs alone. If some of them are close to their prediction,
what all of them share, such as the time of one PE, is not to blame.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from paradl.sweep.measured.predicted_runs import Deviation, PredictedRun, identify_case
from paradl.sweep.measured.runs import PARTS

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
        return (
            f"{slow} slower than predicted in every run {self._describe_band()}{usual}: "
            f"{self._suspect_scale()}"
        )

    def _describe_band(self) -> str:
        """Describe the PEs of the runs that are off, and by how much."""
        off = [self.factors[p] for p in self.band]
        times = f"{_join_ends(f'{min(off):.1f}', f'{max(off):.1f}')} times"
        if self.is_last and self.near:
            return f"from {self.band[0]:,} PEs on, {times}"
        return f"on {_join_ends(f'{self.band[0]:,}', f'{self.band[-1]:,}')} PEs, {times}"

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
