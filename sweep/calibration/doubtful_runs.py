"""Doubtful runs: measured times that a fit does not take on trust.

A fit is for machines that differ from their predictions. So runs of a network that are off alike
are fitted, unless they are off by more than machines are.
"""

from collections.abc import Iterator, Sequence

from paradl.grids.reading.errors import InputError, format_text
from paradl.sweep.measured.anomalies import find_anomalies, find_deviation
from paradl.sweep.measured.evidence import GROWN
from paradl.sweep.measured.predicted_runs import PredictedRun

# Factor on a predicted time beyond which the unit, the network or the machine is likely another.
MOST = 5.0
NAMED = 5  # doubtful runs that a message names beside the first


def is_doubtful(factor: float) -> bool:
    """True if a factor on predicted times is larger than machines explain."""
    return not 1 / MOST <= factor <= MOST


def refuse_doubtful_runs(runs: Sequence[PredictedRun]) -> None:
    """Raise InputError for runs off by MOST, or as no other run of their network is."""
    doubts = list(_list_doubts(runs))
    if not doubts:
        return
    (first, reason), *others = doubts
    more = ", ".join(run.row.where for run, _ in others[:NAMED])
    if others:
        rest = f" and {len(others) - NAMED:,} more" if len(others) > NAMED else ""
        reason = f"{reason}; in doubt, too: {more}{rest}"
    raise InputError(
        reason,
        where=first.row.where,
        advice="correct them, or fit them all the same with keep_anomalies=True",
    )


def _list_doubts(runs: Sequence[PredictedRun]) -> Iterator[tuple[PredictedRun, str]]:
    """Yield each doubtful run, with the reason."""
    factors: dict[tuple[str, str], list[float]] = {}  # by network and part
    deviations = [find_deviation(run) for run in runs]
    for run, deviation in zip(runs, deviations, strict=True):
        if deviation:
            factors.setdefault((run.row.model, deviation.part), []).append(deviation.factor)
    for run, deviation, anomaly in zip(runs, deviations, find_anomalies(runs), strict=True):
        total = run.compare("total")
        if total and is_doubtful(total.factor):
            yield (
                run,
                f"the iteration took {total.measured:.3g} s, {total.factor:,.4g} times the "
                f"predicted {total.predicted:.3g} s: the unit may be wrong (seconds are "
                "expected), or the network or machine",
            )
        elif deviation and anomaly:
            alike = factors[run.row.model, deviation.part]
            if sum(1 / GROWN <= other / deviation.factor <= GROWN for other in alike) < 2:
                unlike = f", as in no other run of {format_text(run.row.model)}"
                yield run, f"{anomaly['what']}{unlike}: {anomaly['cause']}"
