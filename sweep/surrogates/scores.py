"""Scores: errors of predictions row by row, and regrets of the strategies picked by them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats
from sweep.surrogates.encoding import Flags

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """Known or predicted answers for rows [row]: seconds an epoch, whether it is feasible."""

    seconds: Floats
    feasible: Flags

    def take(self, chosen: Flags | Integers) -> "Answers":
        """Take some of the rows."""
        return Answers(self.seconds[chosen], self.feasible[chosen])


def score_rows(truth: Answers, guess: Answers) -> dict[str, float | None]:
    """R2 of the logarithm of time and percentiles of the relative error, over the rows that have a
    time; F1 of feasibility, over all rows.
    """
    timed = np.isfinite(truth.seconds)
    known, guessed = np.log(truth.seconds[timed]), np.log(guess.seconds[timed])
    errors = np.abs(np.expm1(guessed - known))
    return {
        "r2_log_time": _measure_r2(known, guessed),
        "median_error": _rank(errors, 50),
        "p95_error": _rank(errors, 95),
        "feasibility_f1": _measure_f1(truth.feasible, guess.feasible),
    }


def score_slices(truth: Answers, guess: Answers, slices: Integers) -> dict[str, float | None]:
    """Kendall's tau of strategies, and the regret of the picked one, over the slices in which two
    strategies or more are feasible.

    A forbidden pick fails when it is tried, and the next one is taken; `forbidden_picks` is the
    share of slices where this happens.
    """
    order = np.argsort(slices, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(slices[order])) + 1) if len(order) else []
    taus, regrets, forbidden = [], [], []
    for rows in groups:
        fit = truth.feasible[rows] & np.isfinite(truth.seconds[rows])
        if fit.sum() < 2:
            continue
        taus.append(measure_tau(truth.seconds[rows][fit], guess.seconds[rows][fit]))
        regret, failed = measure_regret(truth.seconds[rows], fit, guess.take(rows))
        regrets.append(regret)
        forbidden.append(failed)
    return {
        "slices": len(regrets),
        "kendall_tau": float(np.mean(taus)) if taus else None,
        "median_regret": _rank(np.array(regrets), 50),
        "mean_regret": float(np.mean(regrets)) if regrets else None,
        "p95_regret": _rank(np.array(regrets), 95),
        "forbidden_picks": float(np.mean(forbidden)) if forbidden else None,
    }


def measure_regret(seconds: Floats, feasible: Flags, guess: Answers) -> tuple[float, bool]:
    """The share by which the pick takes longer than the best; whether the first pick was forbidden.

    Strategies that are predicted to be feasible are tried first, in the order of their times.
    """
    ranking = np.lexsort((guess.seconds, ~guess.feasible))
    first = int(np.argmax(feasible[ranking]))
    return float(seconds[ranking[first]] / seconds[feasible].min() - 1), first > 0


def measure_tau(known: Floats, guess: Floats) -> float:
    """Kendall's tau-a: pairs in the right order less those in the wrong one, over all pairs."""
    above, below = np.triu_indices(len(known), 1)
    signs = np.sign(known[above] - known[below]) * np.sign(guess[above] - guess[below])
    return float(signs.mean())


def _measure_r2(known: Floats, guess: Floats) -> float | None:
    """The share of the variance that is explained; None where there is no variance."""
    spread = ((known - known.mean()) ** 2).sum() if known.size else 0.0
    return float(1 - ((guess - known) ** 2).sum() / spread) if spread > 0 else None


def _measure_f1(known: Flags, guess: Flags) -> float | None:
    """The harmonic mean of precision and recall; None where nothing is feasible in either."""
    right = (known & guess).sum()
    feasible = known.sum() + guess.sum()
    return float(2 * right / feasible) if feasible else None


def _rank(values: Floats, percent: int) -> float | None:
    return float(np.percentile(values, percent)) if values.size else None
