"""Evaluating a surrogate: scores on what each split tests, beside those of simple baselines.

The rows that a split tests are those of its test side that lie on the training side of all other
splits that the surrogate was trained by: what differs is what that split holds out.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grids.models.layers import Floats
from grids.reading.errors import InputError
from sweep.samples.read import open_samples
from sweep.samples.splits import SPLITS
from sweep.surrogates.encoding import read_values
from sweep.surrogates.extra import expect_extra
from sweep.surrogates.neighbours import Neighbours
from sweep.surrogates.rows import EPOCH, Rows, read_rows
from sweep.surrogates.scores import Answers, score_rows, score_slices
from sweep.surrogates.surrogate import Surrogate, load_surrogate, read_outputs

# Rows of a split that are tested at most: more change no figure in its second digit.
TESTED = 60_000
Tell = Callable[[str, str], None]


def evaluate_surrogate(
    path: str | Path,
    data: str | Path,
    *,
    splits: Sequence[str] = (),
    baselines: bool = True,
    tell: Tell = lambda split, method: None,
) -> list[dict[str, Any]]:
    """A row for each split and method: R2 of the logarithm of time, relative errors, F1 of
    feasibility, Kendall's tau and regret of strategies; `note` where there are none, and why.

    splits: some of them; by default each that the data set has, with a note where the surrogate was
    trained on what is tested. baselines: the nearest training row (`neighbour`), and in each slice
    the strategy that was the fastest most often in training (`habit`). tell: is given what is next.

    InputError: no surrogate, no data set, another one than it was trained on, no such split.
    """
    expect_extra()
    surrogate, samples = load_surrogate(path), open_samples(data)
    _expect_same(surrogate, samples.facts, str(data))
    trained = [str(each) for each in surrogate.facts["splits"]]
    rows = read_rows(samples, [*trained, *splits])
    scored: list[dict[str, Any]] = []
    methods = _Methods(surrogate, rows.take(rows.is_train(trained)), baselines)
    for split in splits or [each for each in SPLITS if each in samples.splits]:
        if split not in trained:
            note = f"trained on its test rows; to test it, train by the split {split}"
            scored.append({"split": split, "method": surrogate.learner, "note": note})
            continue
        tested = rows.take(_find_tested(rows, split, trained))
        if not len(tested):
            note = "no rows to test on the training side of the other splits"
            scored.append({"split": split, "method": surrogate.learner, "note": note})
            continue
        scored += methods.score(split, tested, tell)
    return scored


def _find_tested(rows: Rows, split: str, trained: Sequence[str]) -> Any:
    """The rows that a split tests [row], of whole slices, TESTED of them about at most."""
    others = [each for each in trained if each != split]
    tested = ~rows.is_train([split]) & rows.is_train(others)
    share = TESTED / max(int(tested.sum()), 1)
    if share < 1:
        slices = rows.frame["slice"].to_numpy()
        numbers = np.random.default_rng(0).permutation(np.unique(slices[tested]))
        tested &= np.isin(slices, numbers[: max(1, int(share * len(numbers)))])
    return tested


class _Methods:
    """The surrogate and what it has to beat."""

    def __init__(self, surrogate: Surrogate, train: Rows, baselines: bool) -> None:
        self._surrogate = surrogate
        self._habit = rank_strategies(train) if baselines else None
        self._neighbours = None
        if baselines:
            train = train.take(train.frame["defined"].to_numpy(bool))
            self._neighbours = Neighbours(self._encode(train), train)

    def score(self, split: str, rows: Rows, tell: Tell) -> list[dict[str, Any]]:
        """A row of scores for each method."""
        truth = read_truth(rows)
        slices = rows.frame["slice"].to_numpy()
        tell(split, self._surrogate.learner)
        said = self._surrogate.apply(rows.frame)
        answers: dict[str, Answers] = {
            self._surrogate.learner: Answers(said.epoch_time, said.feasible)
        }
        if self._neighbours is not None:
            tell(split, "neighbour")
            near = read_outputs(
                self._neighbours.apply(self._encode(rows), rows)[None].astype(np.float64)
            )
            answers["neighbour"] = Answers(near.epoch_time, near.feasible)
        scored = [
            {
                "split": split,
                "method": method,
                "rows": len(rows),
                **score_rows(truth, each),
                **score_slices(truth, each, slices),
            }
            for method, each in answers.items()
        ]
        if self._habit is not None:
            unseen = len(self._habit) + 1.0
            habit = Answers(
                np.array([self._habit.get(each, unseen) for each in rows.frame["strategy"]]),
                np.ones(len(rows), bool),
            )
            scored.append(
                {
                    "split": split,
                    "method": "habit",
                    "rows": len(rows),
                    **dict.fromkeys(score_rows(truth, truth)),
                    **score_slices(truth, habit, slices),
                }
            )
        return scored

    def _encode(self, rows: Rows) -> Any:
        encoding = self._surrogate.encoding
        return encoding.encode(read_values(rows.frame, encoding.names))


def read_truth(rows: Rows) -> Answers:
    """What the data set says of rows."""
    seconds: Floats = rows.frame[EPOCH].to_numpy(np.float64)
    return Answers(seconds, rows.frame["feasible"].to_numpy(bool))


def rank_strategies(rows: Rows) -> dict[str, float]:
    """The rank of each strategy by how often it was the fastest that is feasible in a slice."""
    frame = rows.frame[rows.frame["feasible"].to_numpy(bool)]
    fastest = frame.loc[frame.groupby("slice")[EPOCH].idxmin(), "strategy"]
    order = fastest.value_counts().index
    return {str(strategy): float(rank + 1) for rank, strategy in enumerate(order)}


def _expect_same(surrogate: Surrogate, facts: Mapping[str, Any], where: str) -> None:
    """InputError: a data set whose splits hold out something else than what was held out."""
    known = surrogate.facts["splits_of_data"]
    for split in surrogate.facts["splits"]:
        here = facts["splits"].get(split)
        same = here is not None and dict(here) == known[split]
        if split == "random":
            same = here is not None and facts["seed"] == surrogate.facts["data_seed"]
        if not same:
            raise InputError(
                f"its split {split!r} holds out something else than the one that was trained by",
                where=where,
                advice="evaluate on the data set of the training, or train on this one",
            )
