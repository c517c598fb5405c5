"""Encoding: features as a learner reads them, logarithms of mean 0 and variance 1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats
from grids.reading.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Singles = NDArray[np.float32]
Flags = NDArray[np.bool_]
# How far below the least value of training a logarithm goes on: of a feature that was never 0 and
# now is, the logarithm has no value.
BELOW = 0.1
# Relative slack at the ends of a range: values are written in more than one precision.
SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Encoding:
    """How features become numbers [feature]: (log(x + offset) - mean) / scale.

    low, high: the range of training. constants: features of one value there, which are left out.
    """

    names: tuple[str, ...]
    offset: Floats
    mean: Floats
    scale: Floats
    low: Floats
    high: Floats
    constants: Mapping[str, float]

    def encode(self, values: Floats) -> Singles:
        """Encoded features [row, feature] of values [row, feature]."""
        floor = np.where(self.offset > 0, 0.0, self.low * BELOW)
        logs = np.log(np.maximum(values, floor) + self.offset)
        return np.asarray((logs - self.mean) / self.scale, np.float32)

    def differentiate(self, values: Floats) -> Singles:
        """d encoded / d log value [row, feature]."""
        rates = np.divide(values, values + self.offset, out=np.zeros_like(values), where=values > 0)
        return np.asarray(rates / self.scale, np.float32)

    def find_outside(self, frame: "pd.DataFrame") -> Flags:
        """Which values [row, name] lie outside of the range of training, by `watched`."""
        values = read_values(frame, self.watched)
        constant = np.array([*self.constants.values()], float)
        low, high = np.append(self.low, constant), np.append(self.high, constant)
        slack = SLACK * np.maximum(np.abs(low), np.abs(high))
        return np.asarray((values < low - slack) | (values > high + slack))

    @property
    def watched(self) -> tuple[str, ...]:
        """All features of the training rows, those of one value last."""
        return (*self.names, *self.constants)


def fit_encoding(frame: "pd.DataFrame", names: Sequence[str]) -> Encoding:
    """The encoding of the features `names` over the rows of training."""
    values = read_values(frame, names)
    low, high = values.min(axis=0), values.max(axis=0)
    varying = high > low
    if not varying.any():
        raise InputError("all features have one value in the training rows: nothing can be learnt")
    kept = values[:, varying]
    offset = np.where(low[varying] > 0, 0.0, _find_least(kept))
    logs = np.log(kept + offset)
    return Encoding(
        names=tuple(np.array(names)[varying].tolist()),
        offset=offset,
        mean=logs.mean(axis=0),
        scale=np.maximum(logs.std(axis=0), 1e-6),
        low=low[varying],
        high=high[varying],
        constants=dict(
            zip(np.array(names)[~varying].tolist(), low[~varying].tolist(), strict=True)
        ),
    )


def read_values(frame: "pd.DataFrame", names: Sequence[str]) -> Floats:
    """Values [row, feature]. InputError: a column is missing, no number, below 0."""
    missing = [name for name in names if name not in frame]
    if missing:
        raise InputError(
            f"features are missing: {', '.join(missing)}",
            advice="give the columns that 'paradl sample' writes",
        )
    try:
        values = frame[list(names)].to_numpy(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"a feature is no number: {error}") from error
    bad = ~(np.isfinite(values) & (values >= 0)).all(axis=0)
    if bad.any():
        name = names[int(np.argmax(bad))]
        raise InputError(f"expected numbers of at least 0 in every row, in the column {name!r}")
    return np.asarray(values)


def _find_least(values: Floats) -> Floats:
    """The least value above 0 of each feature [feature]."""
    positive = np.where(values > 0, values, np.inf)
    return np.asarray(positive.min(axis=0))
