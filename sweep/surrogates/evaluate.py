"""Evaluate a surrogate on the test rows of each split, next to baselines.

A split is tested on rows that are on its test side and on the training side of the surrogate's
other splits: they differ from the training rows only in what that split holds out. Baselines:
`neighbour` answers with the nearest training row; `habit` ranks strategies by how often they were
fastest in training, and predicts no times. Scores are errors by row, and regrets of the strategies
that are picked.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Flags, Floats, Integers
from paradl.kernels.names.stored import EPOCH
from paradl.sweep.samples.read import open_samples
from paradl.sweep.samples.splits import SPLITS
from paradl.sweep.surrogates.rows import (
    Encoding,
    Singles,
    is_train,
    read_rows,
    read_targets,
    read_values,
)
from paradl.sweep.surrogates.surrogate import Surrogate, load_surrogate, read_outputs


def score_rows(truth: pd.DataFrame, guess: pd.DataFrame) -> dict[str, float | None]:
    """Return R2 of log time and percentiles of the relative error, over rows with a time; F1 of
    feasibility, over all rows. A score without any rows is None.
    """
    seconds, feasible = truth[EPOCH].to_numpy(np.float64), truth["feasible"].to_numpy(bool)
    timed, guessed_feasible = np.isfinite(seconds), guess["feasible"].to_numpy(bool)
    known, guessed = np.log(seconds[timed]), np.log(guess[EPOCH].to_numpy()[timed])
    errors = np.abs(np.expm1(guessed - known))
    spread = ((known - known.mean()) ** 2).sum() if known.size else 0.0
    right = (feasible & guessed_feasible).sum()
    counted = feasible.sum() + guessed_feasible.sum()
    return {
        # The explained share of the variance.
        "r2_log_time": float(1 - ((guessed - known) ** 2).sum() / spread) if spread > 0 else None,
        "median_error": _rank(errors, 50),
        "p95_error": _rank(errors, 95),
        # The harmonic mean of precision and recall.
        "feasibility_f1": float(2 * right / counted) if counted else None,
    }


def score_slices(
    truth: pd.DataFrame, guess: pd.DataFrame, slices: Integers
) -> dict[str, float | None]:
    """Return Kendall's tau of strategies and the regret of the picked one, over slices with at
    least two feasible strategies.

    Strategies that are predicted to be feasible are tried first, in order of their times. An
    infeasible pick is assumed to fail, and the next one is taken; `forbidden_picks` is the share of
    slices where that happens.
    """
    known, guessed = truth[EPOCH].to_numpy(np.float64), guess[EPOCH].to_numpy()
    fits = truth["feasible"].to_numpy(bool) & np.isfinite(known)
    columns = {"slice": slices, "fits": fits, "known": known, "guess": guessed}
    rows = pd.DataFrame(columns | {"doubted": ~guess["feasible"].to_numpy(bool)})
    # With one feasible strategy there is nothing to rank.
    rows = rows[rows.groupby("slice")["fits"].transform("sum") >= 2]
    rows = rows.sort_values(["slice", "doubted", "guess"])
    fitting = rows[rows["fits"]]
    groups, pairs = fitting.groupby("slice"), fitting[["known", "guess"]].to_numpy().T
    taus = [measure_tau(*pairs[:, places]) for places in groups.indices.values()]
    regrets = (groups["known"].first() / groups["known"].min() - 1).to_numpy()
    failures = ~rows.groupby("slice")["fits"].first().to_numpy(bool)
    return {
        "slices": len(regrets),
        "kendall_tau": _average(np.array(taus)),
        "median_regret": _rank(regrets, 50),
        "mean_regret": _average(regrets),
        "p95_regret": _rank(regrets, 95),
        "forbidden_picks": _average(failures),
    }


def measure_tau(known: Floats, guess: Floats) -> float:
    """Return Kendall's tau-a: pairs in the right order less those in the wrong one, over all."""
    above, below = np.triu_indices(len(known), 1)
    signs = np.sign(known[above] - known[below]) * np.sign(guess[above] - guess[below])
    return float(signs.mean())


def _rank(values: Floats, percent: int) -> float | None:
    return float(np.percentile(values, percent)) if values.size else None


def _average(values: Floats | Flags) -> float | None:
    return float(values.mean()) if values.size else None


# About how many training rows are searched; how many rows are looked up at once.
KEPT, AT_ONCE = 50_000, 2_000


class Neighbours:
    """Training rows by strategy, in whole slices: a slice is answered from the same point."""

    def __init__(self, encoding: Encoding, rows: pd.DataFrame) -> None:
        numbers, sizes = np.unique(rows["slice"], return_counts=True)
        # At random, so that the kept slices are like all others.
        order = np.random.default_rng(0).permutation(len(numbers))
        kept = rows[rows["slice"].isin(numbers[order[np.cumsum(sizes[order]) <= KEPT]])]
        self._encoding = encoding
        self._features = self._encode(kept)
        odds = np.where(kept["feasible"], 1.0, -1.0)
        self._outputs = np.column_stack([read_targets(kept), odds])
        self._strategies = kept["strategy"].to_numpy()

    def answer(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the nearest row's answer: of the same strategy, or of any if that is unknown."""
        features, nearest = self._encode(rows), np.zeros(len(rows), np.int64)
        for strategy, numbers in rows.groupby("strategy").indices.items():
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
        return read_outputs(self._outputs[nearest][None])

    def _encode(self, rows: pd.DataFrame) -> Singles:
        return self._encoding.encode(read_values(rows, self._encoding.names))


class Habit:
    """Rank of each strategy by how often it was the fastest feasible one in a slice."""

    def __init__(self, rows: pd.DataFrame) -> None:
        feasible = rows[rows["feasible"].to_numpy(bool)].reset_index(drop=True)
        fastest = feasible.loc[feasible.groupby("slice")[EPOCH].idxmin(), "strategy"]
        strategies = fastest.value_counts().index
        self.ranks = {str(name): float(rank) for rank, name in enumerate(strategies, 1)}

    def answer(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return ranks in place of times; all rows are assumed feasible."""
        ranked = rows["strategy"].map(self.ranks).fillna(len(self.ranks) + 1.0)
        return pd.DataFrame({EPOCH: ranked, "feasible": True})


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
    methods: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {NETWORK: surrogate.apply}
    if baselines:
        train = rows[is_train(rows, trained)]
        defined = train[train["defined"].to_numpy(bool)]
        methods["neighbour"] = Neighbours(surrogate.encoding, defined).answer
        methods[HABIT] = Habit(train).answer
    scores: list[dict[str, object]] = []
    for split in splits or [name for name in SPLITS if name in samples.splits]:
        note = ""
        if split not in trained:  # rows that the surrogate has learnt from test nothing
            note = f"trained on its test rows; to test it, train with --split {split}"
        elif (tested := _find_tested(rows, split, trained)).empty:
            note = "no test rows on the training side of the other splits"
        if note:
            scores.append({"split": split, "method": NETWORK, "note": note})
            continue
        for method, answer in methods.items():
            report(split, method)
            guess = answer(tested)
            by_row = score_rows(tested, guess)
            if method == HABIT:  # answers with ranks instead of times
                by_row = dict.fromkeys(by_row)
            by_slice = score_slices(tested, guess, tested["slice"].to_numpy())
            scores.append(
                {"split": split, "method": method, "rows": len(tested), **by_row, **by_slice}
            )
    return scores


def _find_tested(rows: pd.DataFrame, split: str, trained: Sequence[str]) -> pd.DataFrame:
    """Return the rows that a split tests: whole slices, at most about TESTED rows."""
    others = [name for name in trained if name != split]
    tested = rows[~is_train(rows, [split]) & is_train(rows, others)].reset_index(drop=True)
    if len(tested) <= TESTED:
        return tested
    numbers = np.random.default_rng(0).permutation(np.unique(tested["slice"]))
    count = max(1, int(TESTED / len(tested) * len(numbers)))
    return tested[tested["slice"].isin(numbers[:count])].reset_index(drop=True)


def _expect_same(surrogate: Surrogate, facts: Mapping[str, Any], where: str) -> None:
    """Raise InputError unless the data set's splits hold out what the training held out."""
    for split in surrogate.facts["splits"]:
        held = facts["splits"].get(split)
        known = surrogate.facts["splits_of_data"][split]
        # Rows of `random` follow from a hash with the seed, and not from labels.
        is_same = split != "random" or facts["seed"] == surrogate.facts["data_seed"]
        if held != known or not is_same:
            raise InputError(
                f"its split {split!r} differs from that of the training data",
                where=where,
                advice="evaluate on the training data set, or train on this one",
            )
