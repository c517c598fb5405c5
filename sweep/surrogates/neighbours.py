"""The nearest neighbour: what a surrogate has to beat. Its answer is the nearest training row's."""

import numpy as np

from sweep.surrogates.encoding import Singles
from sweep.surrogates.rows import Rows, read_targets

# Training rows that are kept to search in, about, and rows that are looked up at once.
KEPT, AT_ONCE = 50_000, 2_000


class Neighbours:
    """Training rows to look in, those of each strategy apart.

    Whole slices: else strategies of one slice would be answered from different points.
    """

    def __init__(self, features: Singles, rows: Rows, seed: int = 0) -> None:
        slices = rows.frame["slice"].to_numpy()
        numbers, sizes = np.unique(slices, return_counts=True)
        order = np.random.default_rng(seed).permutation(len(numbers))
        kept = numbers[order[np.cumsum(sizes[order]) <= KEPT]]
        chosen = np.flatnonzero(np.isin(slices, kept))
        self._features = features[chosen]
        feasible = np.where(rows.frame["feasible"].to_numpy(bool), 1.0, -1.0)
        answers = np.column_stack([read_targets(rows.frame), feasible])
        self._answers = answers[chosen].astype(np.float32)
        self._strategies = rows.frame["strategy"].to_numpy()[chosen]

    def apply(self, features: Singles, rows: Rows) -> Singles:
        """Logarithms of the targets and the log odds' sign [row, 4]; of a strategy that was not
        trained on, the nearest row of any.
        """
        outputs = np.full((len(rows), self._answers.shape[1]), np.nan, np.float32)
        strategies = rows.frame["strategy"].to_numpy()
        for strategy in np.unique(strategies):
            places = np.flatnonzero(strategies == strategy)
            among = np.flatnonzero(self._strategies == strategy)
            among = among if len(among) else np.arange(len(self._strategies))
            for first in range(0, len(places), AT_ONCE):
                block = places[first : first + AT_ONCE]
                outputs[block] = self._answers[among[self._find(features[block], among)]]
        return outputs

    def _find(self, features: Singles, among: np.ndarray) -> np.ndarray:
        """The nearest of some training rows to each row."""
        known = self._features[among]
        squares = (known**2).sum(axis=1)
        return np.asarray(np.argmin(squares - 2 * features @ known.T, axis=1))
