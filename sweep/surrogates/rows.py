"""Rows of a data set for learners: encoded features, logarithms of targets, slopes, sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paradl.grids.entries.parameters import DEGREES as PARALLELISMS
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Flags, Floats
from paradl.kernels.names.stored import EPOCH, TARGETS
from paradl.sweep.samples.columns import name_slope
from paradl.sweep.samples.splits import TRAIN, name_label, name_split

if TYPE_CHECKING:
    from paradl.sweep.samples.read import Samples

Singles = NDArray[np.float32]
# Smaller values are encoded as this share of the smallest in training: 0 has no logarithm.
LEAST_VALUE = 0.1
# Relative tolerance at the ends of a range: files have single and double precision.
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Encoding:
    """Encoding (log(x + offset) - mean) / scale of features, arrays by feature.

    low, high: training range. constants: features with one value in training, and that value;
    they are not encoded.
    """

    names: tuple[str, ...]
    constants: Mapping[str, float]
    offset: Floats
    mean: Floats
    scale: Floats
    low: Floats
    high: Floats

    def encode(self, values: Floats) -> Singles:
        """Encode values [row, feature]."""
        floor = np.where(self.offset > 0, 0.0, self.low * LEAST_VALUE)
        logs = np.log(np.maximum(values, floor) + self.offset)
        return np.asarray((logs - self.mean) / self.scale, np.float32)

    def differentiate(self, values: Floats) -> Singles:
        """Return d encoded / d log value [row, feature]."""
        rates = np.divide(values, values + self.offset, out=np.zeros_like(values), where=values > 0)
        return np.asarray(rates / self.scale, np.float32)

    def find_outside(self, frame: pd.DataFrame) -> Flags:
        """Return whether values are outside the training range [row, feature], as in `watched`."""
        values = read_values(frame, self.watched)
        constant = np.array([*self.constants.values()], float)
        low, high = np.append(self.low, constant), np.append(self.high, constant)
        slack = SLACK * np.maximum(np.abs(low), np.abs(high))
        return np.asarray((values < low - slack) | (values > high + slack))

    @property
    def watched(self) -> tuple[str, ...]:
        """All features of the training rows, constant ones last."""
        return (*self.names, *self.constants)


def fit_encoding(frame: pd.DataFrame, names: Sequence[str]) -> Encoding:
    """Fit the encoding of the features `names` to training rows. InputError: all are constant."""
    values = read_values(frame, names)
    low, high = values.min(axis=0), values.max(axis=0)
    varying = high > low
    if not varying.any():
        raise InputError("every feature is constant in the training rows: nothing can be learned")
    kept = values[:, varying]
    smallest = np.where(kept > 0, kept, np.inf).min(axis=0)
    # Features that may be 0 are shifted by their smallest other value: logarithms stay finite.
    offset = np.where(low[varying] > 0, 0.0, smallest)
    logs = np.log(kept + offset)
    constants = zip(np.array(names)[~varying].tolist(), low[~varying].tolist(), strict=True)
    return Encoding(
        names=tuple(np.array(names)[varying].tolist()),
        constants=dict(constants),
        offset=offset,
        mean=logs.mean(axis=0),
        # A feature that hardly varies must not be divided by almost 0.
        scale=np.maximum(logs.std(axis=0), 1e-6),
        low=low[varying],
        high=high[varying],
    )


def read_values(frame: pd.DataFrame, names: Sequence[str]) -> Floats:
    """Read values [row, feature]. InputError: a column is missing, not numeric or negative."""
    missing = [name for name in names if name not in frame]
    if missing:
        raise InputError(
            f"features are missing: {', '.join(missing)}",
            advice="rows need the columns that 'paradl sample' writes",
        )
    try:
        values = frame[list(names)].to_numpy(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"a feature is not a number: {error}") from error
    bad = ~(np.isfinite(values) & (values >= 0)).all(axis=0)
    if bad.any():
        name = names[int(np.argmax(bad))]
        raise InputError(f"expected numbers of at least 0 in the column {name!r}")
    return np.asarray(values)


# Communication is raised to at least this share of an epoch: 0 has no logarithm.
LEAST_SHARE = 1e-4
ROOM = "memory_capacity"
DEGREES = tuple(f"degree_{group}" for group in PARALLELISMS)
LABELS = (*map(name_label, ("model", "dataset", "system", "strategy")), "slice")


def is_train(frame: pd.DataFrame, splits: Sequence[str]) -> Flags:
    """Return True for rows on the training side of all these splits [row]."""
    sides = frame[[name_split(split) for split in splits]]
    return np.asarray((sides == TRAIN).all(axis=1))


def read_rows(samples: "Samples", splits: Sequence[str], *, slopes: bool = False) -> pd.DataFrame:
    """Read the columns that training and scoring need. InputError: no such split, no slopes."""
    samples.expect_splits(splits)
    if slopes and not samples.inputs:
        raise InputError(
            "the data set has no gradients to train on",
            where="gradients",
            advice="sample it with gradients",
        )
    columns = [*LABELS, *samples.list_columns("feature", constants=True)]
    columns += [EPOCH, *TARGETS, "feasible", "defined", *map(name_split, samples.splits)]
    if slopes:
        columns += ["near_kink", *samples.list_columns("gradient", constants=True)]
    return samples.read(columns)


def read_targets(frame: pd.DataFrame) -> Singles:
    """Return logarithms of the targets [row, target], NaN where undefined."""
    epoch = frame[EPOCH].to_numpy(np.float64)
    columns = [frame[name].to_numpy(np.float64) for name in TARGETS]
    columns[1] = np.maximum(columns[1], LEAST_SHARE * epoch)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.stack(columns, axis=1))
    return np.asarray(np.where(np.isfinite(logs), logs, np.nan), np.float32)


def read_kinds(frame: pd.DataFrame) -> Singles:
    """Return 1 for each parallelism in use, else 0 [row, parallelism]."""
    return np.asarray(frame[list(DEGREES)].to_numpy() != 1, np.float32)


def read_room(frame: pd.DataFrame) -> Singles:
    """Return the logarithm of a PE's memory [row]."""
    return np.asarray(np.log(np.maximum(frame[ROOM].to_numpy(np.float64), 1.0)), np.float32)


def read_slopes(frame: pd.DataFrame, inputs: Sequence[str]) -> Singles:
    """Return elasticities of epoch and targets [row, 1 + target, input], NaN where undefined, and
    near kinks, where they are one-sided.
    """
    names = [name_slope(target, name) for target in (EPOCH, *TARGETS) for name in inputs]
    slopes = frame[names].to_numpy(np.float32, copy=True)
    slopes[frame["near_kink"].to_numpy(bool)] = np.nan
    return slopes.reshape(len(frame), -1, len(inputs))
