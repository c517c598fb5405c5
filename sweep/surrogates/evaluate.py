"""Evaluate a surrogate on the test rows of each split, next to baselines.

A split is tested on rows that are on its test side and on the training side of the surrogate's
other splits: they differ from the training rows only in what that split holds out.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grids.reading.errors import InputError
from kernels.names.arrays import Flags
from kernels.names.stored import EPOCH
from sweep.samples.read import open_samples
from sweep.samples.splits import SPLITS
from sweep.surrogates.baselines import Habit, Neighbours
from sweep.surrogates.rows import SampleRows, read_rows
from sweep.surrogates.scores import Answers, score_rows, score_slices
from sweep.surrogates.surrogate import Surrogate, load_surrogate

# Most rows to test per split: more do not change the second digit of a score.
TESTED = 60_000
HABIT = "habit"
Report = Callable[[str, str], None]


def evaluate_surrogate(
    path: str | Path,
    data: str | Path,
    *,
    splits: Sequence[str] = (),
    baselines: bool = True,
    report: Report = lambda split, method: None,
) -> list[dict[str, Any]]:
    """Return a row per split and method: R2 of log time, relative errors, F1 of feasibility,
    Kendall's tau and regret of strategies, or a `note` on why there are no scores.

    splits: by default all of the data set; a note stands for those whose test rows the surrogate
    was trained on. baselines: also score the nearest training row (`neighbour`) and the strategy
    that was fastest most often in training (`habit`). report: called before each score.

    InputError: no surrogate, no data set, not the one of the training, no such split.
    """
    surrogate, samples = load_surrogate(path), open_samples(data)
    _expect_same(surrogate, samples.facts, str(data))
    trained = [str(name) for name in surrogate.facts["splits"]]
    rows = read_rows(samples, [*trained, *splits])
    methods = _list_methods(surrogate, rows.take(rows.is_train(trained)) if baselines else None)
    scores: list[dict[str, Any]] = []
    for split in splits or [name for name in SPLITS if name in samples.splits]:
        note, tested = f"trained on its test rows; to test it, train with --split {split}", None
        # Rows that the surrogate has learnt from test nothing.
        if split in trained:
            note = "no test rows on the training side of the other splits"
            tested = rows.take(_find_tested(rows, split, trained))
        if not tested:
            scores.append({"split": split, "method": surrogate.learner, "note": note})
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

    methods: dict[str, Callable[[SampleRows], Answers]] = {surrogate.learner: answer}
    if train is None:
        return methods
    defined = train.take(train.frame["defined"].to_numpy(bool))
    neighbours = Neighbours(surrogate.encoding, defined)
    return methods | {"neighbour": neighbours.answer, HABIT: Habit(train).answer}


def _score(rows: SampleRows, answers: Answers, *, timed: bool) -> dict[str, Any]:
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
        if split == "random":
            is_same = held is not None and facts["seed"] == surrogate.facts["data_seed"]
        if not is_same:
            raise InputError(
                f"its split {split!r} differs from that of the training data",
                where=where,
                advice="evaluate on the training data set, or train on this one",
            )
