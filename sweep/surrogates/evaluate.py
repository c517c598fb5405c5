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
from sweep.surrogates.encoding import Singles, read_values
from sweep.surrogates.extra import expect_extra
from sweep.surrogates.neighbours import Neighbours
from sweep.surrogates.rows import EPOCH, Rows, read_rows
from sweep.surrogates.scores import Answers, score_rows, score_slices
from sweep.surrogates.surrogate import Surrogate, load_surrogate, read_outputs

# Rows of a split that are tested at most: more change no figure in its second digit.
TESTED = 60_000
# The baseline that orders strategies, and knows no times.
HABIT = "habit"
Tell = Callable[[str, str], None]
Method = Callable[[Rows], Answers]


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
    trained = [str(name) for name in surrogate.facts["splits"]]
    rows = read_rows(samples, [*trained, *splits])
    train = rows.take(rows.is_train(trained))
    methods = _list_methods(surrogate, train if baselines else None)
    scored: list[dict[str, Any]] = []
    for split in splits or [name for name in SPLITS if name in samples.splits]:
        note, tested = f"trained on its test rows; to test it, train by the split {split}", None
        if split in trained:
            note = "no rows to test on the training side of the other splits"
            tested = rows.take(_find_tested(rows, split, trained))
        if not tested:
            scored.append({"split": split, "method": surrogate.learner, "note": note})
            continue
        for name, answer in methods.items():
            tell(split, name)
            scored.append({"split": split, "method": name, **_score(tested, answer(tested), name)})
    return scored


def _list_methods(surrogate: Surrogate, train: Rows | None) -> dict[str, Method]:
    """The surrogate, and the baselines that it has to beat, which learn from the rows `train`."""

    def encode(rows: Rows) -> Singles:
        encoding = surrogate.encoding
        return encoding.encode(read_values(rows.frame, encoding.names))

    def ask(rows: Rows) -> Answers:
        said = surrogate.apply(rows.frame)
        return Answers(said.epoch_time, said.feasible)

    methods: dict[str, Method] = {surrogate.learner: ask}
    if train is None:
        return methods
    ranks, defined = rank_strategies(train), train.take(train.frame["defined"].to_numpy(bool))
    neighbours = Neighbours(encode(defined), defined)

    def look_up(rows: Rows) -> Answers:
        near = read_outputs(neighbours.apply(encode(rows), rows)[None].astype(np.float64))
        return Answers(near.epoch_time, near.feasible)

    def rank(rows: Rows) -> Answers:
        ranked = rows.frame["strategy"].map(ranks).fillna(len(ranks) + 1.0)
        return Answers(np.asarray(ranked, np.float64), np.ones(len(rows), bool))

    return methods | {"neighbour": look_up, HABIT: rank}


def _score(rows: Rows, answers: Answers, method: str) -> dict[str, Any]:
    """The scores of a method's answers for rows."""
    truth, slices = read_truth(rows), rows.frame["slice"].to_numpy()
    of_rows = score_rows(truth, answers)
    if method == HABIT:
        of_rows = dict.fromkeys(of_rows)
    return {"rows": len(rows), **of_rows, **score_slices(truth, answers, slices)}


def _find_tested(rows: Rows, split: str, trained: Sequence[str]) -> Any:
    """The rows that a split tests [row], of whole slices, TESTED of them about at most."""
    others = [name for name in trained if name != split]
    tested = ~rows.is_train([split]) & rows.is_train(others)
    share = TESTED / max(int(tested.sum()), 1)
    if share < 1:
        slices = rows.frame["slice"].to_numpy()
        numbers = np.random.default_rng(0).permutation(np.unique(slices[tested]))
        tested &= np.isin(slices, numbers[: max(1, int(share * len(numbers)))])
    return tested


def read_truth(rows: Rows) -> Answers:
    """The answers in the data set."""
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
