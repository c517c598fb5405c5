"""Read rows of a data set for learners: features, logarithms of targets, slopes, sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paradl.grids.entries.parameters import DEGREES as PARALLELISMS
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Flags, Floats
from paradl.kernels.names.stored import EPOCH, TARGETS
from paradl.sweep.samples.columns import name_slope
from paradl.sweep.samples.features import OUTER_LINKS
from paradl.sweep.samples.splits import TRAIN, name_label, name_split
from paradl.sweep.surrogates.encoding import Singles

if TYPE_CHECKING:
    import pandas as pd

    from paradl.sweep.samples.read import Samples

# Communication is raised to at least this share of an epoch: 0 has no logarithm.
LEAST_SHARE = 1e-4
ROOM = "memory_capacity"
DEGREES = tuple(f"degree_{group}" for group in PARALLELISMS)
LABELS = (*map(name_label, ("model", "dataset", "system", "strategy")), "slice")


@dataclass(frozen=True, eq=False)
class SampleRows:
    """Rows of a data set. features: their columns. inputs: parameters with slopes."""

    frame: "pd.DataFrame"
    features: tuple[str, ...]
    inputs: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, chosen: Flags) -> "SampleRows":
        """Return some of the rows."""
        return SampleRows(self.frame[chosen].reset_index(drop=True), self.features, self.inputs)

    def is_train(self, splits: Sequence[str]) -> Flags:
        """Return True for rows on the training side of all these splits [row]."""
        sides = [self.frame[name_split(split)].to_numpy() == TRAIN for split in splits]
        return np.asarray(np.all(sides, axis=0)) if sides else np.ones(len(self), bool)


def read_rows(samples: "Samples", splits: Sequence[str], *, slopes: bool = False) -> SampleRows:
    """Read the columns that training and scoring need. InputError: no such split, no slopes."""
    samples.expect_splits(splits)
    if slopes and not samples.inputs:
        raise InputError(
            "the data set has no gradients to train on",
            where="gradients",
            advice="sample it with gradients",
        )
    features = tuple(samples.list_columns("feature", constants=True))
    gradients = ["near_kink", *samples.list_columns("gradient", constants=True)] if slopes else []
    columns = [*LABELS, *features, EPOCH, *TARGETS, "feasible", "defined", *gradients]
    frame = samples.read([*columns, *(name_split(side) for side in samples.splits)])
    return SampleRows(frame, features, samples.inputs)


def read_targets(frame: "pd.DataFrame") -> Singles:
    """Return logarithms of the targets [row, target], NaN where undefined."""
    epoch = frame[EPOCH].to_numpy(np.float64)
    columns = [frame[name].to_numpy(np.float64) for name in TARGETS]
    columns[1] = np.maximum(columns[1], LEAST_SHARE * epoch)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.stack(columns, axis=1))
    return np.asarray(np.where(np.isfinite(logs), logs, np.nan), np.float32)


def read_kinds(frame: "pd.DataFrame") -> Singles:
    """Return 1 for each parallelism in use, else 0 [row, parallelism]."""
    return np.asarray(frame[list(DEGREES)].to_numpy() != 1, np.float32)


def read_room(frame: "pd.DataFrame") -> Singles:
    """Return the logarithm of a PE's memory [row]."""
    return np.asarray(np.log(np.maximum(frame[ROOM].to_numpy(np.float64), 1.0)), np.float32)


def list_followers(name: str) -> tuple[str, ...]:
    """List the features that follow an input: itself, and for links those of outer levels."""
    outer = [link for link in OUTER_LINKS if f"inter_{link.rpartition('_')[2]}" == name]
    return (name, *outer)


def read_slopes(rows: SampleRows) -> Floats:
    """Return elasticities of epoch and targets [row, 1 + target, input], NaN where undefined."""
    names = [name_slope(target, name) for target in (EPOCH, *TARGETS) for name in rows.inputs]
    slopes = rows.frame[names].to_numpy(np.float64, copy=True)
    return slopes.reshape(len(rows), -1, len(rows.inputs))
