"""Evaluate a surrogate on the test rows of each split, next to baselines.

A split is tested on rows that are on its test side and on the training side of the surrogate's
other splits: they differ from the training rows only in what that split holds out. Baselines:
`neighbour` answers with the nearest training row; `habit` ranks strategies by how often they were
fastest in training, and predicts no times. Scores are errors by row, and regrets of the strategies
that are picked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Flags, Floats, Integers
from paradl.kernels.names.stored import EPOCH
from paradl.sweep.samples.read import open_samples
from paradl.sweep.samples.splits import SPLITS
from paradl.sweep.surrogates.rows import (
    Encoding,
    SampleRows,
    Singles,
    read_rows,
    read_targets,
    read_values,
)
from paradl.sweep.surrogates.surrogate import Surrogate, load_surrogate, read_outputs


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


# About how many training rows are searched; how many rows are looked up at once.
KEPT, AT_ONCE = 50_000, 2_000


class Neighbours:
    """Training rows by strategy, in whole slices: a slice is answered from the same point."""

    def __init__(self, encoding: Encoding, rows: SampleRows) -> None:
        slices = rows.frame["slice"].to_numpy()
        numbers, sizes = np.unique(slices, return_counts=True)
        # At random, so that the kept slices are like all others.
        order = np.random.default_rng(0).permutation(len(numbers))
        kept = rows.take(np.isin(slices, numbers[order[np.cumsum(sizes[order]) <= KEPT]]))
        self._encoding = encoding
        self._features = self._encode(kept)
        odds = np.where(kept.frame["feasible"].to_numpy(bool), 1.0, -1.0)
        self._outputs = np.column_stack([read_targets(kept.frame), odds])
        self._strategies = kept.frame["strategy"].to_numpy()

    def answer(self, rows: SampleRows) -> Answers:
        """Return the nearest row's answer: of the same strategy, or of any if that is unknown."""
        features, strategies = self._encode(rows), rows.frame["strategy"].to_numpy()
        nearest = np.zeros(len(rows), np.int64)
        for strategy in np.unique(strategies):
            numbers = np.flatnonzero(strategies == strategy)
            candidates = np.flatnonzero(self._strategies == strategy)
            # A strategy that training never saw: any row is better than none.
            candidates = candidates if len(candidates) else np.arange(len(self._strategies))
            known = self._features[candidates]
            squares = (known**2).sum(axis=1)
            for first in range(0, len(numbers), AT_ONCE):
                block = numbers[first : first + AT_ONCE]
                # Squared distances, less the row's own square.
                distances = squares - 2 * features[block] @ known.T
                nearest[block] = candidates[np.argmin(distances, axis=1)]
        predictions = read_outputs(self._outputs[nearest][None])
        return Answers(predictions.epoch_time, predictions.feasible)

    def _encode(self, rows: SampleRows) -> Singles:
        return self._encoding.encode(read_values(rows.frame, self._encoding.names))


class Habit:
    """Rank of each strategy by how often it was the fastest feasible one in a slice."""

    def __init__(self, rows: SampleRows) -> None:
        frame = rows.frame[rows.frame["feasible"].to_numpy(bool)]
        fastest = frame.loc[frame.groupby("slice")[EPOCH].idxmin(), "strategy"]
        self.ranks = {
            str(strategy): float(rank + 1)
            for rank, strategy in enumerate(fastest.value_counts().index)
        }

    def answer(self, rows: SampleRows) -> Answers:
        """Return ranks in place of times; all rows are assumed feasible."""
        ranked = rows.frame["strategy"].map(self.ranks).fillna(len(self.ranks) + 1.0)
        return Answers(np.asarray(ranked, np.float64), np.ones(len(rows), bool))


# Most rows to test per split: more do not change the second digit of a score.
TESTED = 60_000
NETWORK, HABIT = "network", "habit"
Report = Callable[[str, str], None]


def evaluate_surrogate(
    path: str | Path,
    data: str | Path,
    *,
    splits: Sequence[str] = (),
    baselines: bool = True,
    report: Report = lambda split, method: None,
) -> list[dict[str, object]]:
    """Return a row per split and method: R2 of log time, relative errors, F1 of feasibility,
    Kendall's tau and regret of strategies, or a `note` on why there are no scores.

    splits: by default all of the data set; a note stands for those whose test rows the surrogate
    was trained on. baselines: also score the nearest training row (`neighbour`) and the strategy
    that was fastest most often in training (`habit`). report: called before each score.

    InputError: no surrogate, no data set, not the one of the training, no such split.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> space = {"axes": axes | {"pe": 64, "batch": {"loguniform": [8, 256]}}, "oracle": "paper"}
    >>> _ = paradl.sample(space, "rows", 200)
    >>> _ = paradl.train_surrogate("rows", "net.eqx", splits=["size"], epochs=2)
    >>> rows = paradl.evaluate_surrogate("net.eqx", "rows", splits=["size"])
    >>> [(row["method"], row["rows"]) for row in rows]
    [('network', 40), ('neighbour', 40), ('habit', 40)]
    """
    surrogate, samples = load_surrogate(path), open_samples(data)
    _expect_same(surrogate, samples.facts, str(data))
    trained = [str(name) for name in surrogate.facts["splits"]]
    rows = read_rows(samples, [*trained, *splits])
    methods = _list_methods(surrogate, rows.take(rows.is_train(trained)) if baselines else None)
    scores: list[dict[str, object]] = []
    for split in splits or [name for name in SPLITS if name in samples.splits]:
        note, tested = f"trained on its test rows; to test it, train with --split {split}", None
        # Rows that the surrogate has learnt from test nothing.
        if split in trained:
            note = "no test rows on the training side of the other splits"
            tested = rows.take(_find_tested(rows, split, trained))
        if not tested:
            scores.append({"split": split, "method": NETWORK, "note": note})
            continue
        for method, answer in methods.items():
            report(split, method)
            scored = _score(tested, answer(tested), timed=method != HABIT)
            scores.append({"split": split, "method": method, **scored})
    return scores


def _list_methods(
    surrogate: Surrogate, train: SampleRows | None
) -> dict[str, Callable[[SampleRows], Answers]]:
    """Return the surrogate and, given training rows, the baselines."""

    def answer(rows: SampleRows) -> Answers:
        predictions = surrogate.apply(rows.frame)
        return Answers(predictions.epoch_time, predictions.feasible)

    methods: dict[str, Callable[[SampleRows], Answers]] = {NETWORK: answer}
    if train is None:
        return methods
    defined = train.take(train.frame["defined"].to_numpy(bool))
    neighbours = Neighbours(surrogate.encoding, defined)
    return methods | {"neighbour": neighbours.answer, HABIT: Habit(train).answer}


def _score(rows: SampleRows, answers: Answers, *, timed: bool) -> dict[str, object]:
    """Score a method's answers; row scores are None unless its answers are times (`timed`)."""
    frame = rows.frame
    truth = Answers(frame[EPOCH].to_numpy(np.float64), frame["feasible"].to_numpy(bool))
    scores = score_rows(truth, answers)
    slices = score_slices(truth, answers, frame["slice"].to_numpy())
    return {"rows": len(rows), **(scores if timed else dict.fromkeys(scores)), **slices}


def _find_tested(rows: SampleRows, split: str, trained: Sequence[str]) -> Flags:
    """Return True for rows that a split tests: whole slices, at most about TESTED rows [row]."""
    others = [name for name in trained if name != split]
    tested: Flags = ~rows.is_train([split]) & rows.is_train(others)
    share = TESTED / max(int(tested.sum()), 1)
    if share < 1:
        slices = rows.frame["slice"].to_numpy()
        numbers = np.random.default_rng(0).permutation(np.unique(slices[tested]))
        tested &= np.isin(slices, numbers[: max(1, int(share * len(numbers)))])
    return tested


def _expect_same(surrogate: Surrogate, facts: Mapping[str, Any], where: str) -> None:
    """Raise InputError unless the data set's splits hold out what the training held out."""
    for split in surrogate.facts["splits"]:
        held = facts["splits"].get(split)
        known = surrogate.facts["splits_of_data"][split]
        is_same = held is not None and dict(held) == known
        # Its rows follow from a hash with the seed, and not from labels.
        if split == "random":
            is_same = held is not None and facts["seed"] == surrogate.facts["data_seed"]
        if not is_same:
            raise InputError(
                f"its split {split!r} differs from that of the training data",
                where=where,
                advice="evaluate on the training data set, or train on this one",
            )
