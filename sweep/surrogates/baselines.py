"""Baselines that a surrogate has to beat.

`neighbour` answers with the nearest training row. `habit` ranks strategies by how often they were
fastest in training, and predicts no times.
"""

import numpy as np

from kernels.names.stored import EPOCH
from sweep.surrogates.encoding import Encoding, Singles, read_values
from sweep.surrogates.rows import SampleRows, read_targets
from sweep.surrogates.scores import Answers
from sweep.surrogates.surrogate import read_outputs

# About how many training rows are searched; how many rows are looked up at once.
KEPT, AT_ONCE = 50_000, 2_000


class Neighbours:
    """Training rows by strategy.

    Whole slices are kept, so that all strategies of a slice are answered from the same point.
    """

    def __init__(self, encoding: Encoding, rows: SampleRows, seed: int = 0) -> None:
        slices = rows.frame["slice"].to_numpy()
        numbers, sizes = np.unique(slices, return_counts=True)
        # At random, so that the kept slices are like all others.
        order = np.random.default_rng(seed).permutation(len(numbers))
        kept = rows.take(np.isin(slices, numbers[order[np.cumsum(sizes[order]) <= KEPT]]))
        self._encoding = encoding
        self._features = self._encode(kept)
        odds = np.where(kept.frame["feasible"].to_numpy(bool), 1.0, -1.0)
        self._outputs = np.column_stack([read_targets(kept.frame), odds])
        self._strategies = kept.frame["strategy"].to_numpy()

    def answer(self, rows: SampleRows) -> Answers:
        """Return the nearest row's answer: of the same strategy, or of any if that is unknown."""
        features, strategies = self._encode(rows), rows.frame["strategy"].to_numpy()
        nearest = np.zeros(len(rows), np.int64)
        for strategy in np.unique(strategies):
            numbers = np.flatnonzero(strategies == strategy)
            candidates = np.flatnonzero(self._strategies == strategy)
            # A strategy that training never saw: any row is better than none.
            candidates = candidates if len(candidates) else np.arange(len(self._strategies))
            known = self._features[candidates]
            squares = (known**2).sum(axis=1)
            for first in range(0, len(numbers), AT_ONCE):
                block = numbers[first : first + AT_ONCE]
                # Squared distances, less the row's own square.
                distances = squares - 2 * features[block] @ known.T
                nearest[block] = candidates[np.argmin(distances, axis=1)]
        predictions = read_outputs(self._outputs[nearest][None])
        return Answers(predictions.epoch_time, predictions.feasible)

    def _encode(self, rows: SampleRows) -> Singles:
        return self._encoding.encode(read_values(rows.frame, self._encoding.names))


class Habit:
    """Rank of each strategy by how often it was the fastest feasible one in a slice."""

    def __init__(self, rows: SampleRows) -> None:
        frame = rows.frame[rows.frame["feasible"].to_numpy(bool)]
        fastest = frame.loc[frame.groupby("slice")[EPOCH].idxmin(), "strategy"]
        self.ranks = {
            str(strategy): float(rank + 1)
            for rank, strategy in enumerate(fastest.value_counts().index)
        }

    def answer(self, rows: SampleRows) -> Answers:
        """Return ranks in place of times; all rows are assumed feasible."""
        ranked = rows.frame["strategy"].map(self.ranks).fillna(len(self.ranks) + 1.0)
        return Answers(np.asarray(ranked, np.float64), np.ones(len(rows), bool))
