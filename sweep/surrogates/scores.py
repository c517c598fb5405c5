"""Score predictions: errors by row, and regrets of the strategies that they pick."""

from dataclasses import dataclass

import numpy as np

from paradl.kernels.names.arrays import Flags, Floats, Integers


@dataclass(frozen=True, eq=False)
class Answers:
    """Known or predicted answers [row]: seconds per epoch, and feasibility."""

    seconds: Floats
    feasible: Flags

    def take(self, chosen: Flags | Integers) -> "Answers":
        """Return the answers of some rows."""
        return Answers(self.seconds[chosen], self.feasible[chosen])


def score_rows(truth: Answers, guess: Answers) -> dict[str, float | None]:
    """Return R2 of log time and percentiles of the relative error, over rows with a time; F1 of
    feasibility, over all rows. A score without any rows is None.
    """
    timed = np.isfinite(truth.seconds)
    known, guessed = np.log(truth.seconds[timed]), np.log(guess.seconds[timed])
    errors = np.abs(np.expm1(guessed - known))
    spread = ((known - known.mean()) ** 2).sum() if known.size else 0.0
    right = (truth.feasible & guess.feasible).sum()
    feasible = truth.feasible.sum() + guess.feasible.sum()
    return {
        # The explained share of the variance.
        "r2_log_time": float(1 - ((guessed - known) ** 2).sum() / spread) if spread > 0 else None,
        "median_error": _rank(errors, 50),
        "p95_error": _rank(errors, 95),
        # The harmonic mean of precision and recall.
        "feasibility_f1": float(2 * right / feasible) if feasible else None,
    }


def score_slices(truth: Answers, guess: Answers, slices: Integers) -> dict[str, float | None]:
    """Return Kendall's tau of strategies and the regret of the picked one, over slices with at
    least two feasible strategies.

    An infeasible pick is assumed to fail, and the next one is taken; `forbidden_picks` is the share
    of slices where that happens.
    """
    order = np.argsort(slices, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(slices[order])) + 1) if len(order) else []
    picks = []  # tau, regret, whether the first pick was infeasible
    for rows in groups:
        fit = truth.feasible[rows] & np.isfinite(truth.seconds[rows])
        # With one feasible strategy there is nothing to rank.
        if fit.sum() >= 2:
            tau = measure_tau(truth.seconds[rows][fit], guess.seconds[rows][fit])
            picks.append((tau, *measure_regret(truth.seconds[rows], fit, guess.take(rows))))
    taus, regrets, failures = np.array(picks, float).reshape(-1, 3).T
    return {
        "slices": len(regrets),
        "kendall_tau": _average(taus),
        "median_regret": _rank(regrets, 50),
        "mean_regret": _average(regrets),
        "p95_regret": _rank(regrets, 95),
        "forbidden_picks": _average(failures),
    }


def measure_regret(seconds: Floats, feasible: Flags, guess: Answers) -> tuple[float, bool]:
    """Return by what share the pick is slower than the best; whether the first pick failed.

    Strategies that are predicted to be feasible are tried first, in order of their times.
    """
    ranking = np.lexsort((guess.seconds, ~guess.feasible))
    first = int(np.argmax(feasible[ranking]))
    return float(seconds[ranking[first]] / seconds[feasible].min() - 1), first > 0


def measure_tau(known: Floats, guess: Floats) -> float:
    """Return Kendall's tau-a: pairs in the right order less those in the wrong one, over all."""
    above, below = np.triu_indices(len(known), 1)
    signs = np.sign(known[above] - known[below]) * np.sign(guess[above] - guess[below])
    return float(signs.mean())


def _rank(values: Floats, percent: int) -> float | None:
    return float(np.percentile(values, percent)) if values.size else None


def _average(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None
