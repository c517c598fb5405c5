"""Evaluating a surrogate: scores on the rows that each split tests, beside those of baselines.

A split is tested on the rows of its test side that lie on the training side of all other splits of
the training: they differ from the training rows in what that split holds out, and in nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grids.reading.errors import InputError
from kernels.blocks.labels import EPOCH
from sweep.samples.read import open_samples
from sweep.samples.splits import SPLITS
from sweep.surrogates.baselines import Habit, Neighbours
from sweep.surrogates.encoding import Flags
from sweep.surrogates.rows import SampleRows, read_rows
from sweep.surrogates.scores import Answers, score_rows, score_slices
from sweep.surrogates.surrogate import Surrogate, load_surrogate

# Rows of a split that are tested at most: more change no score in its second digit.
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
    """A row for each split and method: R2 of the logarithm of time, relative errors, F1 of
    feasibility, Kendall's tau and regret of strategies; or a `note` on why there are no scores.

    splits: by default all that the data set has, with a note where the surrogate was trained on the
    tested rows. baselines: scores of the nearest training row (`neighbour`), and of the strategy
    that was the fastest most often in training (`habit`). report: called before each is scored.

    InputError: no surrogate, no data set, not the one that it was trained on, no such split.
    """
    surrogate, samples = load_surrogate(path), open_samples(data)
    _expect_same(surrogate, samples.facts, str(data))
    trained = [str(name) for name in surrogate.facts["splits"]]
    rows = read_rows(samples, [*trained, *splits])
    methods = _list_methods(surrogate, rows.take(rows.is_train(trained)) if baselines else None)
    scores: list[dict[str, Any]] = []
    for split in splits or [name for name in SPLITS if name in samples.splits]:
        note, tested = f"trained on its test rows; to test it, train by the split {split}", None
        if split in trained:
            note = "no rows to test on the training side of the other splits"
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
    """The surrogate, and with training rows the baselines, which learn from them."""

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
    """The scores of a method's answers; without those of rows where it does not answer times."""
    frame = rows.frame
    truth = Answers(frame[EPOCH].to_numpy(np.float64), frame["feasible"].to_numpy(bool))
    of_rows = score_rows(truth, answers)
    of_slices = score_slices(truth, answers, frame["slice"].to_numpy())
    return {"rows": len(rows), **(of_rows if timed else dict.fromkeys(of_rows)), **of_slices}


def _find_tested(rows: SampleRows, split: str, trained: Sequence[str]) -> Flags:
    """True if a split tests each row: whole slices, at most TESTED rows or so."""
    others = [name for name in trained if name != split]
    tested: Flags = ~rows.is_train([split]) & rows.is_train(others)
    share = TESTED / max(int(tested.sum()), 1)
    if share < 1:
        slices = rows.frame["slice"].to_numpy()
        numbers = np.random.default_rng(0).permutation(np.unique(slices[tested]))
        tested &= np.isin(slices, numbers[: max(1, int(share * len(numbers)))])
    return tested


def _expect_same(surrogate: Surrogate, facts: Mapping[str, Any], where: str) -> None:
    """InputError: the data set's splits hold out something else than those of the training."""
    known = surrogate.facts["splits_of_data"]
    for split in surrogate.facts["splits"]:
        here = facts["splits"].get(split)
        same = here is not None and dict(here) == known[split]
        if split == "random":
            same = here is not None and facts["seed"] == surrogate.facts["data_seed"]
        if not same:
            raise InputError(
                f"its split {split!r} holds out something else than the split of the training",
                where=where,
                advice="evaluate on the data set of the training, or train on this one",
            )
