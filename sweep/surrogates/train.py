"""Train a surrogate on a data set, on the training sides of some splits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from paradl.grids.reading.errors import InputError, shorten
from paradl.sweep.exports.target import check_target
from paradl.sweep.samples.read import open_samples
from paradl.sweep.surrogates.rows import fit_encoding, is_train, read_rows
from paradl.sweep.surrogates.surrogate import (
    MOST_MEMBERS,
    MOST_WIDTH,
    Surrogate,
    expect_extra,
    save_surrogate,
)

# Default splits: the surrogate learns from the rows on the training side of all of them.
SPLITS = ("random", "model")
# Share of the training slices for validation, which decides when to stop.
VALIDATED = 0.05
LEAST_ROWS = 100
MOST_EPOCHS = 10_000
# Called with the member, the epoch, their number and the validation error.
Report = Callable[[int, int, int, float], None]


@dataclass(frozen=True)
class Trained:
    """Summary of a training, by its training rows.

    dropped: constant features. error: root mean square of the logarithm of time, in validation.
    """

    path: Path
    rows: int
    dropped: tuple[str, ...]
    error: float
    bytes: int


def train_surrogate(
    data: str | Path,
    path: str | Path,
    *,
    splits: Sequence[str] | None = None,
    gradients: bool = False,
    members: int = 1,
    epochs: int = 20,
    width: int = 128,
    seed: int = 0,
    force: bool = False,
    report: Report = lambda member, epoch, epochs, error: None,
) -> Trained:
    """Train a surrogate on the data set `data` and write it to `path`.

    splits: train on their training sides, so that they can test it; by default `random` and
    `model`, if the data set has them. gradients: learn slopes, too. members: networks with
    different seeds, whose spread estimates the uncertainty. report: called after each epoch.

    InputError: no data set, too few rows, no such split, no gradients, `path` exists. RunError: a
    library is missing, the disk is full; then nothing was written.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> space = {"axes": axes | {"pe": 64, "batch": {"loguniform": [8, 256]}}, "oracle": "paper"}
    >>> _ = paradl.sample(space, "rows", 200)
    >>> paradl.train_surrogate("rows", "net.eqx", epochs=2, width=8).rows
    190
    """
    target = Path(path)
    for name, value, least, most in (
        ("members", members, 1, MOST_MEMBERS),
        ("epochs", epochs, 1, MOST_EPOCHS),
        ("width", width, 1, MOST_WIDTH),
        ("seed", seed, 0, 2**31 - 1),
    ):
        if not isinstance(value, int) or not least <= value <= most:
            raise InputError(f"expected {least:,} to {most:,}, got {shorten(value)}", where=name)
    expect_extra()
    check_target(target, force=force)
    samples = open_samples(data)
    # A data set has the splits that its rows allow.
    chosen = [split for split in SPLITS if split in samples.splits] if splits is None else [*splits]
    rows = read_rows(samples, chosen, slopes=gradients)
    train, valid = _divide(rows, chosen, seed)
    encoding = fit_encoding(train, samples.list_columns("feature", constants=True))
    from paradl.sweep.surrogates.fit import fit_network, make_examples

    examples = make_examples(train, encoding, samples.inputs if gradients else ())
    checked = make_examples(valid, encoding)
    parts = [
        fit_network(
            *(examples, checked),
            width=width,
            epochs=epochs,
            seed=seed + number,
            report=partial(report, number),
        )
        for number in range(members)
    ]
    facts = {
        "data": samples.facts["name"],
        "rows": len(train),
        "splits": chosen,
        "splits_of_data": {name: dict(split) for name, split in samples.facts["splits"].items()},
        "data_seed": samples.facts["seed"],
        "gradients": gradients,
        "width": width,
        "seed": seed,
        "versions": dict(samples.facts["versions"]),
    }
    surrogate = Surrogate(encoding, tuple(member for member, _ in parts), facts)
    save_surrogate(surrogate, target, force=force)
    return Trained(
        path=target,
        rows=len(train),
        dropped=tuple(encoding.constants),
        error=float(np.mean([error for _, error in parts])),
        bytes=target.stat().st_size,
    )


def _divide(
    rows: pd.DataFrame, splits: Sequence[str], seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Divide the defined rows on the training sides by whole slices: for training, validation."""
    usable = rows[is_train(rows, splits) & rows["defined"].to_numpy(bool)]
    numbers = np.random.default_rng([seed, 5]).permutation(np.unique(usable["slice"]))
    held = usable["slice"].isin(numbers[: max(1, round(VALIDATED * len(numbers)))])
    train, valid = usable[~held], usable[held]
    if len(train) < LEAST_ROWS:
        sides = f" on the training side of {', '.join(splits)}" if splits else ""
        raise InputError(
            f"expected at least {LEAST_ROWS} training rows, got {len(train)}{sides}",
            advice="sample more rows",
        )
    return train, valid
