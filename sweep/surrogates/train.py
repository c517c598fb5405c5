"""Training a surrogate on a data set, on the training side of some of its splits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from grids.reading.errors import InputError, shorten
from sweep.exports.target import check_target
from sweep.samples.read import open_samples
from sweep.surrogates.encoding import Encoding, Flags, fit_encoding
from sweep.surrogates.extra import expect_extra
from sweep.surrogates.rows import Rows, read_rows
from sweep.surrogates.surrogate import Learner, Surrogate, save_surrogate

# Splits by which one surrogate can be tested: it learns from the rows that all of them train on.
SPLITS = ("random", "model")
# Share of the training slices that decides when to stop.
VALIDATED = 0.05
LEAST_ROWS = 100
MOST_MEMBERS, MOST_EPOCHS = 100, 10_000
Tell = Callable[[int, int, int, float], None]


@dataclass(frozen=True)
class Trained:
    """A training: rows, features that were dropped for having one value, the error of
    validation (root mean square of the logarithm of time; None for trees), bytes of the file.
    """

    path: Path
    rows: int
    dropped: tuple[str, ...]
    error: float | None
    bytes: int


def train_surrogate(
    data: str | Path,
    path: str | Path,
    *,
    learner: Learner = "network",
    splits: Sequence[str] | None = None,
    gradients: bool = False,
    members: int = 1,
    epochs: int = 20,
    width: int = 128,
    seed: int = 0,
    force: bool = False,
    tell: Tell = lambda member, epoch, epochs, error: None,
) -> Trained:
    """Train a surrogate on the data set `data` and write it to `path`; what was trained.

    learner: a network, or gradient-boosted trees. splits: on whose training sides it learns, and
    so by which it can be tested; `random` and `model` by default, where there are such. gradients:
    on slopes, too (networks). members: learners of other seeds, whose spread tells how unsure they
    are. tell: is given the member, the epoch, how many there are, and the error of validation.

    InputError: no data set, too few rows, a split that is not there, no gradients, a file that is
    there. RunError: a library is missing, the disk is full; then nothing was written.
    """
    target = Path(path)
    _check(learner, gradients, members, epochs, width, seed)
    expect_extra()
    check_target(target, force=force)
    samples = open_samples(data)
    chosen = [split for split in SPLITS if split in samples.splits] if splits is None else [*splits]
    rows = read_rows(samples, chosen, slopes=gradients)
    train, valid = _divide(rows, chosen, seed)
    encoding = fit_encoding(train.frame, rows.features)
    settings = {"gradients": gradients, "epochs": epochs, "width": width}
    parts = [
        _train_member(learner, train, valid, encoding, settings, seed + n, partial(tell, n))
        for n in range(members)
    ]
    facts = {
        "data": samples.facts["name"],
        "rows": len(train),
        "splits": chosen,
        "splits_of_data": {name: dict(split) for name, split in samples.facts["splits"].items()},
        "data_seed": samples.facts["seed"],
        "gradients": gradients,
        "seed": seed,
        "versions": dict(samples.facts["versions"]),
    }
    surrogate = Surrogate(learner, encoding, tuple(member for member, _ in parts), facts)
    save_surrogate(surrogate, target, force=force)
    errors = [error for _, error in parts if error is not None]
    return Trained(
        path=target,
        rows=len(train),
        dropped=tuple(encoding.constants),
        error=float(np.mean(errors)) if errors else None,
        bytes=target.stat().st_size,
    )


def _train_member(
    learner: Learner,
    train: Rows,
    valid: Rows,
    encoding: Encoding,
    settings: dict[str, Any],
    seed: int,
    tell: Callable[[int, int, float], None],
) -> tuple[Any, float | None]:
    """One learner, and its error of validation."""
    from sweep.surrogates.fit import Recipe, fit_network, make_examples

    examples = make_examples(train, encoding, gradients=settings["gradients"])
    checked = make_examples(valid, encoding, gradients=False)
    if learner == "trees":
        from sweep.surrogates.trees import fit_forests

        return fit_forests(examples, checked, seed, tell), None
    return fit_network(examples, checked, Recipe(seed=seed, **settings), tell)


def _divide(rows: Rows, splits: Sequence[str], seed: int) -> tuple[Rows, Rows]:
    """Rows to learn from, and to stop by: whole slices, all of the training sides, defined."""
    learnt = rows.is_train(splits) & rows.frame["defined"].to_numpy(bool)
    slices = rows.frame["slice"].to_numpy()
    numbers = np.unique(slices[learnt])
    shuffled = np.random.default_rng([seed, 5]).permutation(numbers)
    held: Flags = np.isin(slices, shuffled[: max(1, round(VALIDATED * len(numbers)))])
    train, valid = rows.take(learnt & ~held), rows.take(learnt & held)
    if len(train) < LEAST_ROWS:
        of = f" on the training side of {', '.join(splits)}" if splits else ""
        raise InputError(
            f"expected at least {LEAST_ROWS} rows to train on, got {len(train)}{of}",
            advice="sample more rows",
        )
    return train, valid


def _check(learner: str, gradients: bool, members: int, epochs: int, width: int, seed: int) -> None:
    """InputError: what no training can have."""
    if learner not in ("network", "trees"):
        raise InputError(f"expected network or trees, got {shorten(learner)}", where="learner")
    if gradients and learner == "trees":
        raise InputError(
            "trees have no slopes to train", where="gradients", advice="take the network"
        )
    for name, value, most in (
        ("members", members, MOST_MEMBERS),
        ("epochs", epochs, MOST_EPOCHS),
        ("width", width, 4096),
    ):
        if not isinstance(value, int) or not 1 <= value <= most:
            raise InputError(f"expected 1 to {most:,}, got {shorten(value)}", where=name)
    if not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise InputError(f"expected a seed from 0 to 2^31 - 1, got {shorten(seed)}", where="seed")
