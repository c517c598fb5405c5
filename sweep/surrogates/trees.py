"""Gradient-boosted trees, grown, kept and evaluated by LightGBM."""

from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np

from kernels.names.arrays import Flags
from kernels.names.stored import TARGETS
from sweep.surrogates.encoding import Singles
from sweep.surrogates.fit import Examples, Report
from sweep.surrogates.network import OUTPUTS

ROUNDS, LEAVES, RATE, PATIENCE = 200, 63, 0.1, 20
# Rounds between reports of progress.
REPORTED = 10
# Log odds if all rows are feasible, or none.
CERTAIN = 20.0


@dataclass(frozen=True)
class Trees:
    """A booster for each output: logarithms of the targets, then the log odds of being feasible.

    A number stands for an output that was the same in all training rows.
    """

    boosters: tuple[lightgbm.Booster | float, ...]

    def apply(self, features: Singles) -> Singles:
        """Return the outputs [row, output] for encoded features [row, feature]."""
        columns = [
            np.full(len(features), booster)
            if isinstance(booster, float)
            else np.asarray(booster.predict(features, raw_score=True, num_threads=1))
            for booster in self.boosters
        ]
        return np.asarray(np.stack(columns, axis=1), np.float32)

    def write(self) -> list[str | float]:
        """Return LightGBM's text of each booster, or the number."""
        return [
            booster if isinstance(booster, float) else booster.model_to_string()
            for booster in self.boosters
        ]


def read_trees(texts: list[str | float], features: int) -> Trees:
    """Return the trees of LightGBM's texts. ValueError: not those of this number of features."""
    try:
        boosters = tuple(
            text if isinstance(text, float) else lightgbm.Booster(model_str=text) for text in texts
        )
    except lightgbm.basic.LightGBMError as error:
        raise ValueError(str(error)) from error
    counts = {booster.num_feature() for booster in boosters if not isinstance(booster, float)}
    if len(boosters) != OUTPUTS or counts - {features}:
        raise ValueError("other outputs or features")
    return Trees(boosters)


def fit_trees(train: Examples, valid: Examples, seed: int, report: Report) -> Trees:
    """Grow trees for each target and for the log odds of being feasible."""
    return Trees(tuple(_grow(train, valid, output, seed, report) for output in range(OUTPUTS)))


def _grow(
    train: Examples, valid: Examples, output: int, seed: int, report: Report
) -> lightgbm.Booster | float:
    """Grow the trees of one output until validation stops improving."""
    classifies = output == len(TARGETS)

    def read(examples: Examples) -> tuple[Singles, Singles]:
        arrays = examples.arrays
        values = arrays["feasible"] if classifies else arrays["targets"][:, output]
        known: Flags = np.isfinite(values)
        return arrays["features"][known], values[known]

    features, values = read(train)
    # A constant target needs no trees, and LightGBM would stop with a warning.
    if len(np.unique(values)) < 2:
        value = float(values[0]) if len(values) else 0.0
        return CERTAIN * (2 * value - 1) if classifies else value
    options = {
        "objective": "binary" if classifies else "regression",
        "learning_rate": RATE,
        "num_leaves": LEAVES,
        "min_data_in_leaf": 5,
        "seed": seed,
        "num_threads": 1,  # several wait for each other on busy cores, and round differently
        "deterministic": True,
        "verbosity": -1,
    }

    def report_round(state: Any) -> None:
        if state.iteration % REPORTED == 0:
            report(state.iteration, ROUNDS, float(state.evaluation_result_list[0][2]))

    return lightgbm.train(
        options,
        lightgbm.Dataset(features, values),
        ROUNDS,
        valid_sets=[lightgbm.Dataset(*read(valid))],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False), report_round],
    )
